"""The schema decision (specification 001), sentence by sentence, as a client and an operator meet it."""

from __future__ import annotations

import hashlib
import http.server
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.protocol.message_validation import RESULT, SchemaValidator
from portbook.schema import official_schemas
from portbook.schema.official_schemas import SchemaStore
from support import forked_process
from support.in_process_connection import EVERY_REVISION, HANDSHAKES, META, handshake, params
from support.portbook_process import (
    PORTBOOK,
    ROOT,
    SAMPLE_TOOLS,
    Finished,
    HttpServer,
    child,
    environment,
    http_server,
    over_stdio,
    records,
    run,
)

OFFICIAL = Path(official_schemas.__file__).parent / "official"
CANARY = "canary-4711"
VALIDATOR = SchemaValidator(SchemaStore())
VALIDATOR.initialize()

every_revision = pytest.mark.parametrize("revision", EVERY_REVISION)


def message(method: str, given: Any = ..., *, id: object = 1) -> bytes:
    whole: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    return json.dumps(whole if given is ... else {**whole, "params": given}).encode()


def opening(revision: str) -> list[bytes]:
    """What a client of a revision sends first."""
    if revision not in HANDSHAKES:
        return []
    return [
        message("initialize", handshake(revision), id="init"),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ]


def answers_to(revision: str, *frames: bytes, cwd: Path, options: tuple[str, ...] = ()) -> list[Any]:
    """The answers over STDIO to `frames`, without the one to the handshake."""
    finished = over_stdio(*opening(revision), *frames, cwd=cwd, options=options)
    assert finished.code == 0, finished.err
    return [answer for answer in finished.answers if answer.get("id") != "init"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with http_server(cwd=tmp_path_factory.mktemp("http")) as server:
        yield server


def posted(server: HttpServer, frame: bytes, method: str) -> Any:
    """The answer of /mcp in the revision without a handshake."""
    headers = {
        "content_type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp_protocol_version": "2026-07-28",
        "mcp_method": method,
    }
    return server.request("/mcp", frame, **headers).json


# -- Context: four layers, each before the next


@pytest.mark.covers("001.layers.framing")
def test_a_message_is_one_line_however_its_bytes_arrive(tmp_path: Path) -> None:
    frames = [*opening("2025-11-25"), message("ping", id="one"), message("ping", id="two")]
    text = b"".join(frame + b"\n" for frame in frames)
    with child(
        [*PORTBOOK, "serve", "--stdio", str(SAMPLE_TOOLS)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for at in range(0, len(text), 7):  # never a whole message in one write
            process.stdin.write(text[at : at + 7])
        process.stdin.close()
        found = [json.loads(line).get("id") for line in process.stdout]
    assert found == ["init", "one", "two"]
    together = over_stdio(b"\n".join(frames), cwd=tmp_path).answers
    assert [answer.get("id") for answer in together] == ["init", "one", "two"]


@pytest.mark.covers("001.layers.syntax")
@every_revision
def test_what_is_not_json_is_minus_32700(revision: str, server: HttpServer, tmp_path: Path) -> None:
    for broken in (
        b"{",
        b"{'a':1}",
        b'{"a":1}}',
        b'{"a":01}',
        b'{"a":NaN}',
        b'{"a":"\xff"}',
        b"\xef\xbb\xbf{}",
    ):
        answer, pong = answers_to(revision, broken, message("ping", params(revision)), cwd=tmp_path)
        assert (answer["error"]["code"], answer.get("id")) == (-32700, None)
        assert pong["id"] == 1
        assert posted(server, broken, "ping")["error"]["code"] == -32700


WRONG: list[tuple[str, str, Any, int]] = [
    ("no name", "tools/call", {"arguments": {}}, -32602),
    ("a name that is none", "tools/call", {"name": 5}, -32602),
    ("arguments that are none", "tools/call", {"name": "echo", "arguments": []}, -32602),
    ("a cursor that is none", "tools/list", {"cursor": 5}, -32602),
    ("a method that MCP does not have", "no/such", {}, -32601),
    ("a method of the client", "sampling/createMessage", {}, -32601),
]


@pytest.mark.covers("001.layers.codes")
@every_revision
def test_wrong_params_and_unknown_methods_have_their_codes_at_the_door(
    revision: str, server: HttpServer, tmp_path: Path
) -> None:
    frames = [
        message(method, params(revision, **given), id=number)
        for number, (_, method, given, _) in enumerate(WRONG)
    ]
    answers = answers_to(revision, *frames, cwd=tmp_path)
    found = {answer["id"]: answer["error"] for answer in answers}
    assert [found[number]["code"] for number in range(len(WRONG))] == [code for *_, code in WRONG]
    for number, (_, method, _, code) in enumerate(WRONG):
        if code == -32602:
            assert found[number]["data"]["violations"]
        if revision == "2026-07-28" and method != "tools/call":  # that one is known by its headers already
            assert posted(server, frames[number], method)["error"]["code"] == code


@pytest.mark.covers("001.before-logic")
@every_revision
def test_an_invalid_message_never_reaches_a_tool(revision: str, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "from pathlib import Path\nfrom portbook import Toolset\ntoolset = Toolset('t')\n"
        "@toolset.tool(effect='write')\ndef touch(name: str) -> None:\n    Path(name).touch()\n"
    )
    given = params(revision, name="touch", arguments={"name": "ran"})
    valid = json.loads(message("tools/call", given))
    invalid = [
        {**valid, "jsonrpc": "1.0"},
        {**valid, "id": True},
        {**valid, "id": None},
        {**valid, "params": [given]},
        {**valid, "params": {**given, "arguments": [{"name": "ran"}]}},
        {**valid, "params": {**given, "arguments": {"name": 5}}},
        {**valid, "method": "tools/Call"},
    ]
    frames = [*opening(revision), *(json.dumps(each).encode() for each in invalid)]
    ran = run("serve", "--stdio", "tools.py", stdin=b"\n".join(frames) + b"\n", cwd=tmp_path)
    assert ran.code == 0
    assert not (tmp_path / "ran").exists()
    frames = [*opening(revision), json.dumps(valid).encode()]
    run("serve", "--stdio", "tools.py", stdin=b"\n".join(frames) + b"\n", cwd=tmp_path)
    assert (tmp_path / "ran").exists()


# -- Decision 2: the source of the schemas


@pytest.mark.covers("001.schema.default-offline")
def test_without_an_override_the_embedded_schemas_are_in_force(tmp_path: Path) -> None:
    for revision in EVERY_REVISION:
        shown = json.loads(run("schema", "show", revision, "--json", cwd=tmp_path).out)
        assert shown["sha256"] == hashlib.sha256((OFFICIAL / f"{revision}.json").read_bytes()).hexdigest()
        assert shown["origin"] == "embedded"


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    """The schema of 2025-11-25, that allows clients of version 2 alone, and lists with a note of its own."""
    document = json.loads((OFFICIAL / "2025-11-25.json").read_bytes())
    document["$defs"]["Implementation"]["properties"]["version"] = {"const": "2"}
    path = tmp_path / "strict.json"
    path.write_text(json.dumps(document))
    return path


def greeted(cwd: Path, *options: str, **variables: str) -> Finished:
    variables = {"PORTBOOK_SCHEMA_OVERRIDE_REVISION": "2025-11-25", **variables}
    frame = message("initialize", handshake("2025-11-25"))
    return run("serve", "--stdio", *options, stdin=frame + b"\n", cwd=cwd, env=environment(**variables))


@pytest.mark.covers("001.schema.override-file-and-http")
def test_an_override_is_a_file_or_an_http_address(strict: Path, tmp_path: Path) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(strict.read_bytes())

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        try:
            address = f"http://127.0.0.1:{served.server_port}/strict.json"
            for uri in ("strict.json", strict.as_uri(), address):
                finished = greeted(tmp_path, "--schema-override", uri)
                assert finished.answers[0]["error"]["code"] == -32602, uri
                assert "warning" not in finished.err
        finally:
            served.shutdown()
    assert "result" in greeted(tmp_path).answers[0]


@pytest.mark.covers("001.schema.override-config")
def test_an_override_is_set_by_file_variable_or_flag(strict: Path, tmp_path: Path) -> None:
    assert "error" in greeted(tmp_path, "--schema-override", "strict.json").answers[0]
    assert "error" in greeted(tmp_path, PORTBOOK_SCHEMA_OVERRIDE_URI="strict.json").answers[0]
    (tmp_path / "portbook.toml").write_text(
        'schema_override_uri = "strict.json"\nschema_override_revision = "2025-11-25"\n'
    )
    assert "error" in greeted(tmp_path).answers[0]


@pytest.mark.covers("001.schema.override-results")
def test_an_override_governs_params_and_results_alike(tmp_path: Path) -> None:
    document = json.loads((OFFICIAL / "2025-11-25.json").read_bytes())
    document["$defs"]["ListToolsResult"]["required"] = ["tools", "note"]
    (tmp_path / "note.json").write_text(json.dumps(document))
    variables = {"PORTBOOK_SCHEMA_OVERRIDE_REVISION": "2025-11-25"}
    frames = b"\n".join([*opening("2025-11-25"), message("tools/list")]) + b"\n"
    options = ("serve", "--stdio", "--schema-override", "note.json")
    finished = run(*options, stdin=frames, cwd=tmp_path, env=environment(**variables))
    assert finished.answers[-1]["error"]["code"] == -32603


@pytest.mark.covers("001.schema.override-restart")
def test_a_changed_override_is_read_at_the_next_start(strict: Path, tmp_path: Path) -> None:
    changed = strict.read_bytes()
    strict.write_bytes((OFFICIAL / "2025-11-25.json").read_bytes())
    with child(
        [*PORTBOOK, "serve", "--stdio", "--schema-override", "strict.json"],
        cwd=tmp_path,
        env=environment(PORTBOOK_SCHEMA_OVERRIDE_REVISION="2025-11-25"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(message("ping") + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1  # it has started
        strict.write_bytes(changed)
        process.stdin.write(message("initialize", handshake("2025-11-25")) + b"\n")
        process.stdin.close()
        assert "result" in json.loads(process.stdout.readline())
    assert "error" in greeted(tmp_path, "--schema-override", "strict.json").answers[0]


@pytest.mark.covers("001.schema.essential")
def test_a_damaged_embedded_schema_prevents_the_start(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copytree(ROOT / "codex", tmp_path / "codex")
    damaged = tmp_path / "src/portbook/schema/official/2025-06-18.json"
    damaged.write_bytes(damaged.read_bytes() + b" ")
    done = forked_process.run(
        [sys.executable, "-m", "portbook", "serve", "--stdio"],
        input=message("ping") + b"\n",
        capture_output=True,
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(tmp_path / "src")),
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"2025-06-18" in done.stderr
    assert b"Traceback" not in done.stderr


# -- Decision 2, Schema Scope: methods, params, results, errors


@pytest.mark.covers("001.results.official")
@every_revision
def test_every_answer_at_the_door_is_what_the_official_schema_defines(revision: str, tmp_path: Path) -> None:
    asked: list[tuple[str, Any]] = [
        ("tools/list", {}),
        ("tools/call", {"name": "echo", "arguments": {"text": "hi"}}),
        ("tools/call", {"name": "raising", "arguments": {"text": "hi"}}),
        ("tools/call", {"name": "no_such", "arguments": {}}),
        ("no/such", {}),
    ]
    frames = [message(method, params(revision, **given), id=at) for at, (method, given) in enumerate(asked)]
    answers = {answer["id"]: answer for answer in answers_to(revision, *frames, cwd=tmp_path)}
    assert sorted(answers) == list(range(len(asked)))
    for at, (method, _) in enumerate(asked):
        if "error" in answers[at]:
            VALIDATOR.validate("error", answers[at], revision)
        else:
            VALIDATOR.validate(method + RESULT, answers[at]["result"], revision)


@pytest.mark.covers("001.jsonrpc.notifications")
@every_revision
def test_a_notification_is_never_answered_valid_or_not(revision: str, tmp_path: Path) -> None:
    silent = [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
        b'{"jsonrpc":"2.0","method":"notifications/no_such"}',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}',
    ]
    answers = answers_to(revision, *silent, message("ping", params(revision), id="last"), cwd=tmp_path)
    assert [answer["id"] for answer in answers] == ["last"]


@pytest.mark.covers("001.jsonrpc.result-or-error")
def test_a_response_has_a_result_or_an_error_and_not_both(tmp_path: Path) -> None:
    both = b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}'
    answers = answers_to("2025-11-25", both, message("ping", id="last"), cwd=tmp_path)
    assert [answer["id"] for answer in answers] == ["last"]  # an answer would be taken for that to a request
    refused = records(tmp_path / "runs")[-2]
    assert refused["status"] != "ok"


@pytest.mark.covers("001.errors.data")
def test_the_data_of_an_mcp_error_has_the_structure_that_mcp_gives_it(tmp_path: Path) -> None:
    given = {"_meta": {META + "protocolVersion": "1999-01-01", META + "clientCapabilities": {}}}
    [answer] = answers_to("2026-07-28", message("tools/list", given), cwd=tmp_path)
    error = answer["error"]
    assert error["code"] == -32022
    assert error["data"]["requested"] == "1999-01-01"
    assert error["data"]["supported"] == ["2026-07-28"]
    VALIDATOR.validate("error", answer, "2026-07-28")


# -- Decision 6, Validation Middleware: what the client and the operator get


@pytest.mark.covers("001.errors.immediate")
def test_an_error_is_answered_while_a_call_is_still_running(tmp_path: Path) -> None:
    flag = tmp_path / "go"
    with child(
        [*PORTBOOK, "serve", "--stdio", str(SAMPLE_TOOLS)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        waiting = message("tools/call", {"name": "wait_for", "arguments": {"path": str(flag)}}, id="slow")
        broken = message("tools/call", {"name": 5}, id="broken")
        process.stdin.write(b"\n".join([*opening("2025-11-25"), waiting, broken, b""]))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == "init"
        answer = json.loads(process.stdout.readline())
        assert (answer["id"], answer["error"]["code"]) == ("broken", -32602)
        flag.touch()
        assert json.loads(process.stdout.readline())["id"] == "slow"


@pytest.mark.covers("001.errors.sanitised")
@every_revision
def test_an_error_names_the_field_and_the_rule_and_no_value(revision: str, tmp_path: Path) -> None:
    given = params(revision, name="echo", arguments=CANARY)
    [answer] = answers_to(revision, message("tools/call", given), cwd=tmp_path)
    [violation] = answer["error"]["data"]["violations"]
    assert violation["pointer"] == "/params/arguments"
    assert violation["keyword"] == "type"
    assert "object" in violation["message"]
    assert CANARY not in json.dumps(answer)


@pytest.mark.covers("001.errors.logged")
def test_the_record_of_a_refused_message_says_where_and_by_which_keyword(tmp_path: Path) -> None:
    answers_to("2025-11-25", message("tools/call", {"name": "echo", "arguments": CANARY}), cwd=tmp_path)
    record = json.dumps(records(tmp_path / "runs")[-1])
    assert '"/params/arguments"' in record
    assert "/type" in record  # the place of the keyword in the schema
    assert CANARY not in record


@pytest.mark.covers("001.errors.type-unknown")
@every_revision
def test_a_message_whose_type_cannot_be_told_is_minus_32600(
    revision: str, server: HttpServer, tmp_path: Path
) -> None:
    for given in (
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"id": 1, "method": "ping"},
    ):
        frame = json.dumps(given).encode()
        [answer] = answers_to(revision, frame, cwd=tmp_path)
        assert answer["error"]["code"] == -32600
        if revision == "2026-07-28":
            assert posted(server, frame, "ping")["error"]["code"] == -32600
