"""Populating a real backend: what is sent, what is not, and what every answer becomes."""

from __future__ import annotations

import asyncio
import base64
import socket
from typing import Any

import pytest

from portbook.assets import populate as populating
from portbook.assets.library import EMPTY, Library
from portbook.assets.populate import Backend, BackendReply, BadBackend, backend_at, populate
from portbook.net.post import post
from support.asset_samples import BackendProcess

GOOD: dict[str, Any] = {"name": "a"}


def send(
    library: Library,
    url: str,
    asset: Any = GOOD,
    path: str = "/synesthetic-assets/",
    *,
    validate_first: bool = True,
) -> Any:
    sending = populate(library, backend_at(url, path, post), asset, validate_first=validate_first)
    return asyncio.run(sending)


def error(status: int, detail: str) -> dict[str, Any]:
    return {"ok": False, "reason": "backend_error", "status": status, "detail": detail}


@pytest.mark.covers("004.io.populate-backend")
def test_a_valid_asset_is_posted_once_and_its_id_comes_back(
    library: Library, backend: BackendProcess
) -> None:
    assert send(library, backend.url) == {"ok": True, "asset_id": "a-1", "backend_url": backend.url}
    [request] = backend.seen
    assert (request["path"], request["body"]) == ("/synesthetic-assets/", GOOD)
    assert request["headers"]["content-type"] == "application/json"


@pytest.mark.covers("004.populate.validated-first")
def test_an_invalid_asset_is_never_sent(library: Library, backend: BackendProcess) -> None:
    assert send(library, backend.url, {"shader": {"uniforms": ["a"]}}) == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [
            {"path": "", "msg": 'missing property "name"'},
            {"path": "/shader/uniforms/0", "msg": "expected number"},
        ],
    }
    without_schema = send(EMPTY, backend.url)
    assert without_schema["reason"] == "validation_failed"
    assert backend.seen == []


def test_an_invalid_asset_is_sent_where_that_is_asked_for(library: Library, backend: BackendProcess) -> None:
    assert send(library, backend.url, {"bad": 1}, validate_first=False)["ok"] is True
    assert send(EMPTY, backend.url, [], validate_first=False)["ok"] is True
    assert [request["body"] for request in backend.seen] == [{"bad": 1}, []]


@pytest.mark.parametrize("validate_first", [True, False])
def test_an_asset_over_the_size_guard_is_never_sent(
    validate_first: bool, library: Library, backend: BackendProcess
) -> None:
    too_large = {"name": "x" * 1_048_576}
    assert send(library, backend.url, too_large, validate_first=validate_first) == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "", "msg": "payload_too_large"}],
    }
    assert backend.seen == []


@pytest.mark.covers("004.errors.backend")
@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("/refused", error(400, "name is taken")),
        ("/line", error(422, "tempo is missing")),
        ("/silent", error(400, "bad request")),
        ("/broken", error(500, "internal error")),
        ("/trace", error(500, "internal error")),
        ("/page", error(503, "service unavailable")),
        ("/long", error(400, "bad request")),
        ("/odd", error(599, "status 599")),
        ("/moved", error(302, "found")),
        ("/portal", error(502, "invalid_response")),
        ("/list", error(502, "invalid_response")),
    ],
)
def test_an_answer_that_is_no_success_is_a_backend_error(
    path: str, result: dict[str, Any], library: Library, backend: BackendProcess
) -> None:
    assert send(library, backend.url, path=path) == result
    assert [request["path"] for request in backend.seen] == [path], "nothing is tried twice, nor elsewhere"


@pytest.mark.parametrize(("path", "name"), [("/number", "17"), ("/nothing", ""), ("/nameless", "")])
def test_a_success_is_one_whatever_name_it_gives(
    path: str, name: str, library: Library, backend: BackendProcess
) -> None:
    assert send(library, backend.url, path=path)["asset_id"] == name


@pytest.mark.covers("004.errors.network")
def test_a_refused_connection_is_an_unreachable_network(library: Library) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert send(library, f"http://127.0.0.1:{port}") == error(503, "network_unreachable")


@pytest.mark.covers("004.backend.timeout")
@pytest.mark.parametrize("path", ["/hang", "/drip", "/garbage"])
def test_a_backend_that_hangs_or_talks_nonsense_is_an_unreachable_network_and_asked_once(
    path: str, library: Library, backend: BackendProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert populating._TIMEOUT_S == 5.0
    monkeypatch.setattr(populating, "_TIMEOUT_S", 0.5)
    assert send(library, backend.url, path=path) == error(503, "network_unreachable")
    assert len(backend.seen) == 1


def test_a_name_that_does_not_resolve_is_an_unreachable_network(library: Library) -> None:
    assert send(library, "http://no-such-host.invalid") == error(503, "network_unreachable")


@pytest.mark.covers("004.backend.path")
@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://host", "/synesthetic-assets/", "http://host/synesthetic-assets/"),
        ("http://host/", "synesthetic-assets/", "http://host/synesthetic-assets/"),
        ("https://host:8443/api/", "/assets", "https://host:8443/api/assets"),
        ("http://host?x=1#y", "/assets", "http://host/assets"),
    ],
)
def test_the_path_is_put_below_the_backends_address(base: str, path: str, url: str) -> None:
    assert backend_at(base, path, post).url == url


def test_a_password_in_the_address_is_sent_and_never_shown() -> None:
    made = backend_at("http://ada:s%40cret@host/api", "/assets", post)
    assert (made.shown, made.url) == ("http://host/api", "http://host/api/assets")
    assert made.headers["authorization"] == "Basic YWRhOnNAY3JldA=="


@pytest.mark.parametrize(
    "address", ["", "host", "ftp://host", "http://", "http://host:port", "http://[", "http://hö.st"]
)
def test_an_address_that_no_backend_can_have_is_refused(address: str) -> None:
    with pytest.raises(BadBackend, match="the backend's address"):
        backend_at(address, "/assets", post)


def test_proxies_of_the_environment_are_not_used(
    library: Library, backend: BackendProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert send(library, backend.url)["ok"] is True


def test_any_client_will_do_that_posts_bytes(library: Library) -> None:
    sent: list[tuple[str, bytes, float]] = []

    async def fake(url: str, body: bytes, headers: Any, timeout_s: float) -> BackendReply:
        sent.append((url, body, timeout_s))
        raise ConnectionError

    sending = populate(library, Backend("http://x", "http://x/y", fake), GOOD, validate_first=True)
    result = asyncio.run(sending)
    assert result == error(503, "network_unreachable")
    assert sent == [("http://x/y", b'{"name":"a"}', 5.0)]


def test_a_password_may_have_any_bytes() -> None:
    found = backend_at("http://u:p%C3%A9\udcff@host/", "/a", post)
    assert base64.b64decode(found.headers["authorization"].removeprefix("Basic ")) == b"u:p\xc3\xa9\xff"
    assert found.shown == "http://host/"
