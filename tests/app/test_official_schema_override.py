"""Fetching: what is read, and everything that is not."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from portbook.app.official_schema_override import MAX_BYTES, BadOverride, CannotFetch, check_override, fetch
from portbook.net.destinations import without_secrets
from portbook.schema import official_schemas as module
from portbook.schema.official_schemas import NEWEST, REVISIONS, SchemaStore

LIMIT = 1000


class Site:
    """A web server on a free port of this machine, whose pages are functions."""

    def __init__(self) -> None:
        self.pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.headers: list[dict[str, str]] = []
        self.done = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.headers.append({name.lower(): value for name, value in self.headers.items()})
                site.pages[self.path](self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def at(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def close(self) -> None:
        self.done.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def answer(
    status: int, body: bytes = b"", *, length: int | None = -1, **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if length is not None:
            handler.send_header("Content-Length", str(len(body) if length == -1 else length))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    return page


def drip(site: Site, start: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """Send a start, then a byte now and then, until the test is over."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(start)
        try:
            while not site.done.wait(0.01):
                handler.wfile.write(b"x")
        except OSError:
            pass
        handler.close_connection = True

    return page


def reason(uri: str, *, limit: int = LIMIT, timeout_s: float = 20) -> str:
    with pytest.raises(CannotFetch) as raised:
        fetch(uri, limit=limit, timeout_s=timeout_s)
    assert str(raised.value) == f"{without_secrets(uri)}: {raised.value.reason}"
    return raised.value.reason


# -- files


@pytest.mark.parametrize(
    "form", ["{path}", "file://{path}", "file:{path}", "file://localhost{path}", "FILE://{path}"]
)
def test_a_file_is_read_by_path_and_by_address(form: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"x" * LIMIT)
    assert fetch(form.format(path=tmp_path / "a.json"), limit=LIMIT, timeout_s=20) == b"x" * LIMIT


def test_a_relative_path_and_an_escaped_address_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.json").write_bytes(b"x")
    assert fetch("a b.json", limit=LIMIT, timeout_s=20) == b"x"
    assert fetch(f"file://{tmp_path}/a%20b.json", limit=LIMIT, timeout_s=20) == b"x"


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (LIMIT + 1))
    assert reason(str(tmp_path / "a")) == "larger than 1000 bytes"


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert reason(str(tmp_path / "pipe")) == "not a regular file"
        assert reason("/dev/zero") == "not a regular file"
        assert reason(str(tmp_path)) == "not a regular file"
        assert reason(str(tmp_path / "socket")).startswith("cannot be read: ")
    assert reason(str(tmp_path / "missing")) == "cannot be read: No such file or directory"
    assert reason("a\0b") == "not a valid path"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file://elsewhere/a", "a file address names no host; write file:///path"),
        ("ftp://127.0.0.1/a", "only file, http and https addresses can be read; start a path with ./ or /"),
        ("data:,x", "only file, http and https addresses can be read; start a path with ./ or /"),
        ("http:///a", "not a valid address"),
        ("http://[::1/a", "not a valid address"),
        ("http://127.0.0.1:x/", "the answer is not HTTP, or the address is not a valid one"),
        ("http://127.0.0.1/a b", "the answer is not HTTP, or the address is not a valid one"),
    ],
)
def test_other_addresses_are_refused(uri: str, expected: str) -> None:
    assert reason(uri) == expected


# -- HTTP


def test_an_answer_is_read_whole(site: Site) -> None:
    site.pages = {
        "/a": answer(200, b"x" * LIMIT),
        "/unknown-length": answer(200, b"x" * LIMIT, length=None, Connection="close"),
        "/chunked": answer(
            200, b"2\r\nxx\r\n1\r\nx\r\n0\r\n\r\n", length=None, **{"Transfer-Encoding": "chunked"}
        ),
    }
    assert fetch(site.at("/a"), limit=LIMIT, timeout_s=20) == b"x" * LIMIT
    assert fetch(site.at("/a#fragment"), limit=LIMIT, timeout_s=20) == b"x" * LIMIT
    assert fetch(site.at("/unknown-length"), limit=LIMIT, timeout_s=20) == b"x" * LIMIT
    assert fetch(site.at("/chunked"), limit=LIMIT, timeout_s=20) == b"xxx"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (answer(404, b"gone"), "HTTP status 404"),
        (answer(500), "HTTP status 500"),
        (answer(401), "HTTP status 401"),
        (answer(204, length=None), "HTTP status 204"),
        (answer(206, b"x"), "HTTP status 206"),
        (answer(200, b"x" * (LIMIT + 1)), "larger than 1000 bytes"),
        (answer(200, b"x" * (LIMIT + 1), length=None, Connection="close"), "larger than 1000 bytes"),
        (answer(200, b"x", length=10**12), "larger than 1000 bytes"),
        (answer(200, b"x" * 5, length=10), "the answer was cut short"),
        (
            answer(200, b"5\r\nxx", length=None, **{"Transfer-Encoding": "chunked"}),
            "the answer is not HTTP, or the address is not a valid one",
        ),
        (
            lambda handler: handler.wfile.write(b"SSH-2.0\r\n\r\n"),
            "the answer is not HTTP, or the address is not a valid one",
        ),
    ],
)
def test_another_answer_is_refused(
    page: Callable[[BaseHTTPRequestHandler], None], expected: str, site: Site
) -> None:
    def then_close(handler: BaseHTTPRequestHandler) -> None:
        page(handler)
        handler.close_connection = True

    site.pages = {"/a": then_close}
    assert reason(site.at("/a")) == expected


def test_a_redirect_is_followed_on_the_same_host_only(site: Site) -> None:
    other = Site()
    try:
        other.pages = {"/b": answer(200, b"other")}
        site.pages = {
            "/a": answer(302, Location="/b"),
            "/b": answer(200, b"here"),
            "/port": answer(302, Location=other.at("/b")),
            "/host": answer(301, Location=f"http://localhost:{site.server.server_port}/b"),
            "/scheme": answer(302, Location=f"https://{site.host}/b"),
            "/file": answer(302, Location="file:///etc/passwd"),
            "/round": answer(302, Location="/round"),
        }
        assert fetch(site.at("/a"), limit=LIMIT, timeout_s=20) == b"here"
        for path in ("/port", "/host", "/scheme"):
            assert reason(site.at(path)) == "redirects to another place; name that address, if you trust it"
        assert reason(site.at("/file")) == "HTTP status 302"
        assert reason(site.at("/round")) == "HTTP status 302"
        assert other.headers == []
    finally:
        other.close()


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", id="a status line that never ends"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: ", id="a header that never ends"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", id="a body that comes slowly"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="a body without a length"),
    ],
)
def test_one_deadline_holds_for_everything(start: bytes, site: Site) -> None:
    site.pages = {"/a": drip(site, start)}
    began = time.monotonic()
    assert reason(site.at("/a"), limit=10**6, timeout_s=0.2) == "not all of it came within 0.2 s"
    assert time.monotonic() - began < 10


def test_a_host_that_accepts_and_says_nothing_runs_into_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        assert reason(address, timeout_s=0.2) == "not all of it came within 0.2 s"


def test_a_closed_port_is_said_to_be_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert reason(f"http://127.0.0.1:{port}/") == "cannot be reached: Connection refused"


def test_a_plain_port_that_is_asked_for_tls_is_refused(site: Site) -> None:
    assert reason(f"https://{site.host}/a").startswith("cannot be reached: ")


def test_proxies_of_the_environment_are_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    site.pages = {"/a": answer(200, b"x")}
    assert fetch(site.at("/a"), limit=LIMIT, timeout_s=20) == b"x"


def test_userinfo_becomes_a_header_and_is_never_shown(site: Site) -> None:
    site.pages = {"/a": answer(200, b"x"), "/b?token=s3cret": answer(403)}
    assert fetch(f"http://user:p%40ss@{site.host}/a", limit=LIMIT, timeout_s=20) == b"x"
    assert site.headers[0]["authorization"] == "Basic " + base64.b64encode(b"user:p@ss").decode()
    with pytest.raises(CannotFetch) as raised:
        fetch(f"http://user:s3cret@{site.host}/b?token=s3cret", limit=LIMIT, timeout_s=20)
    assert str(raised.value) == f"http://{site.host}/b: HTTP status 403"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://u:p@example.org:8/a?b=c#d", "https://example.org:8/a"),
        ("https://p@ss@example.org/a", "https://example.org/a"),
        ("http://[::1/s3cret", "(an address that cannot be read)"),
        ("a/b.json", "a/b.json"),
        ("file:///a?b", "file:///a"),
    ],
)
def test_an_address_is_shown_without_its_secrets(uri: str, shown: str) -> None:
    assert without_secrets(uri) == shown


DRAFT_07 = "2025-06-18"


def official(revision: str) -> bytes:
    return (Path(module.__file__).parent / "official" / f"{revision}.json").read_bytes()


def changed(revision: str, change: Callable[[Any], object]) -> bytes:
    document = json.loads(official(revision))
    change(document)
    return json.dumps(document).encode()


def put(*path: str, value: Any) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_official_schema_itself_is_accepted(revision: str) -> None:
    data = official(revision)
    digest = hashlib.sha256(data).hexdigest()
    override = check_override(data, revision, digest.upper(), origin="somewhere")
    assert (override.revision, override.origin, override.sha256) == (revision, "somewhere", digest)
    store = SchemaStore(override)
    for name in store.definitions(revision):
        store.definition(revision, name)


@pytest.mark.parametrize(
    "change",
    [
        case("a new definition", put("$defs", "Extra", value={"$ref": "#/$defs/Tool"})),
        case("a stricter one", put("$defs", "Tool", "additionalProperties", value=False)),
        case("a definition that allows anything", put("$defs", "Tool", value=True)),
        case("no dialect", lambda document: document.pop("$schema")),
        case("a title", put("title", value="ours")),
        case(
            "a name to be escaped",
            put("$defs", "a/b~c", value={"$ref": "#/$defs/a~1b~0c/$defs/x", "$defs": {"x": {}}}),
        ),
    ],
)
def test_a_changed_schema_is_accepted(change: Callable[[Any], object]) -> None:
    override = check_override(changed(NEWEST, change), NEWEST, None)
    store = SchemaStore(override)
    for name in store.definitions(NEWEST):
        store.definition(NEWEST, name)


def test_a_revision_may_be_overridden_in_the_other_dialect() -> None:
    text = official(DRAFT_07).decode().replace("#/definitions/", "#/$defs/")
    document = json.loads(text)
    document["$defs"] = document.pop("definitions")
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    store = SchemaStore(check_override(json.dumps(document).encode(), DRAFT_07, None))
    assert store.definition(DRAFT_07, "Tool").is_valid({"name": "a", "inputSchema": {"type": "object"}})


def bomb(key: str) -> Callable[[Any], object]:
    """Sixteen definitions, each of which looks twice at the next: 65,536 evaluations."""

    def change(document: Any) -> None:
        for at in range(16):
            following = {"$ref": f"#/{key}/B{at + 1}"}
            document[key][f"B{at}"] = {"allOf": [following, following]}
        document[key]["B16"] = {}

    return change


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        case("nothing", b"", "it is not JSON: "),
        case("not JSON", b"{", "it is not JSON: the text is incomplete (line 1, column 1)"),
        case("a page", b"<!doctype html>", "it is not JSON: "),
        case("a key twice", b'{"$defs":{},"$defs":{}}', "it is not JSON: an object has the same key twice"),
        case("a byte order mark", b"\xef\xbb\xbf{}", "it is not JSON: "),
        case("a list", b"[]", "it is not a JSON Schema: it must be an object"),
        case("true", b"true", "it is not a JSON Schema: it must be an object"),
        case("no definitions", b"{}", "it is not a JSON Schema of MCP: it has no definitions"),
        case(
            "definitions in a list", b'{"$defs":[]}', "it is not a JSON Schema of MCP: it has no definitions"
        ),
        case(
            "another dialect",
            b'{"$schema":"http://json-schema.org/draft-04/schema#","definitions":{}}',
            "its $schema must be ",
        ),
        case("a dialect that is no string", b'{"$schema":[],"$defs":{}}', "its $schema must be "),
        case("too large", b" " * (MAX_BYTES + 1), "it is larger than 8 MiB"),
        case(
            "another revision",
            official("2025-11-25"),
            f"it lacks definitions that revision {NEWEST} has: CacheableResult, ",
        ),
        case(
            "one definition missing",
            changed(NEWEST, lambda document: document["$defs"].pop("Tool")),
            f"it lacks definitions that revision {NEWEST} has: Tool",
        ),
        case(
            "another document",
            changed(NEWEST, put("$defs", "Tool", value={"$ref": "https://example.org/t"})),
            "/$defs/Tool refers to something outside of $defs; copy it there",
        ),
        case(
            "its own root",
            changed(NEWEST, put("$defs", "Tool", value={"items": {"$ref": "#"}})),
            "/$defs/Tool refers to something outside of $defs; copy it there",
        ),
        case(
            "a dangling reference",
            changed(NEWEST, put("$defs", "Tool", value={"$ref": "#/$defs/Tol"})),
            "it does not compile: /$defs/Tool/$ref: refers to something that is not in this document",
        ),
        case(
            "a wrong keyword",
            changed(NEWEST, put("$defs", "Tool", "type", value="objekt")),
            "it does not compile: /$defs/Tool/type: ",
        ),
        case(
            "a definition that is no schema",
            changed(NEWEST, put("$defs", "Tool", value=5)),
            "it does not compile: /$defs/Tool: ",
        ),
        case(
            "a costly pattern",
            changed(NEWEST, put("$defs", "Tool", "pattern", value="(?=a)b")),
            "it does not compile: /$defs/Tool/pattern: ",
        ),
        case(
            "a circle",
            changed(NEWEST, put("$defs", "Tool", value={"$ref": "#/$defs/Tool"})),
            "it does not compile: ",
        ),
        case("a bomb", changed(NEWEST, bomb("$defs")), "it does not compile: "),
    ],
)
def test_what_cannot_stand_in_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadOverride) as raised:
        check_override(data, NEWEST, None)
    assert raised.value.reason.startswith(reason)
    assert str(raised.value) == raised.value.reason
    assert len(raised.value.reason) < 800


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        case("a bomb", bomb("definitions"), "it does not compile: "),
        case(
            "a bomb in a list",
            lambda document: (
                bomb("definitions")(document),
                put(
                    "definitions",
                    "Tool",
                    value={"items": [{"$ref": "#/definitions/B0"}, {"$ref": "#/definitions/B0"}]},
                )(document),
            ),
            "it does not compile: ",
        ),
        case(
            "a dangling one under dependencies",
            put("definitions", "Tool", value={"dependencies": {"a": {"$ref": "#/definitions/Tol"}}}),
            "it does not compile: /definitions/Tool/dependencies/a/$ref: ",
        ),
        case(
            "a dangling one under additionalItems",
            put(
                "definitions", "Tool", value={"items": [{}], "additionalItems": {"$ref": "#/definitions/Tol"}}
            ),
            "it does not compile: /definitions/Tool/additionalItems/$ref: ",
        ),
        case(
            "a dangling one in a list of items",
            put("definitions", "Tool", value={"items": [{"$ref": "#/definitions/Tol"}]}),
            "it does not compile: /definitions/Tool/items/0/$ref: ",
        ),
        case(
            "an anchor of the other dialect",
            put("definitions", "Tool", value={"$id": "#tool", "allOf": [{"$ref": "#tool"}]}),
            "/definitions/Tool refers to something outside of definitions",
        ),
        case(
            "the other dialect inside",
            put("definitions", "Tool", value={"$schema": "https://json-schema.org/draft/2020-12/schema"}),
            "it does not compile: /definitions/Tool/$schema: must be http://json-schema.org/draft-07/schema#",
        ),
        case(
            "a wrong keyword",
            put("definitions", "Tool", "required", value="name"),
            "it does not compile: /definitions/Tool/required: ",
        ),
    ],
)
def test_draft_07_is_examined_as_closely(change: Callable[[Any], object], reason: str) -> None:
    with pytest.raises(BadOverride) as raised:
        check_override(changed(DRAFT_07, change), DRAFT_07, None)
    assert raised.value.reason.startswith(reason)


def test_the_digest_is_checked_before_anything_looks_inside() -> None:
    with pytest.raises(
        BadOverride, match=f"^its sha256 is {hashlib.sha256(b'{').hexdigest()}, not the expected one"
    ):
        check_override(b"{", NEWEST, "0" * 64)
    with pytest.raises(BadOverride, match="not 64 hexadecimal digits"):
        check_override(b"{", NEWEST, "0" * 63)


def test_an_unknown_revision_is_told_the_known_ones() -> None:
    with pytest.raises(
        BadOverride, match=r'^there is no revision "2026"; choose one of 2024-11-05, .*2026-07-28$'
    ):
        check_override(b"{}", "2026", None)
