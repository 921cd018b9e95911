"""Populating a real backend: what is sent, what is not, and what the contract makes of every answer."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portbook.app.assemble import assemble
from portbook.assets import populate_backend as populating
from portbook.assets.library import Library
from portbook.assets.populate_backend import BadBackend, backend_at
from portbook.audit.memory_sink import MemorySink
from portbook.model import Arrival
from portbook.settings import load_settings
from support.asset_samples import BackendProcess

GOOD: dict[str, Any] = {"name": "a"}

Send = Callable[..., Any]


@pytest.fixture
def send(library: Library, tmp_path: Path) -> Send:
    """Send an asset by the tool's mere name; what comes back is the result."""

    def send(url: str, asset: Any = GOOD, path: str = "/synesthetic-assets/", **more: Any) -> Any:
        flags = {"assets.schemas": tmp_path / "schemas", "docs.enabled": False}
        environ = {"SYN_BACKEND_URL": url, "SYN_BACKEND_ASSETS_PATH": path}
        app = assemble(
            load_settings(None, environ, flags, tmp_path),
            is_exposed=False,
            sink=MemorySink(),
            environ=environ,
        )
        params = {"asset": asset, **more}
        message = {"jsonrpc": "2.0", "id": 1, "method": "populate_backend", "params": params}

        async def main() -> bytes | None:
            try:
                return (await app.boundary.answer(json.dumps(message).encode(), Arrival("http", "/rpc"))).body
            finally:
                await app.close()

        return json.loads(asyncio.run(main()) or b"null")["result"]

    return send


def error(status: int, detail: str) -> dict[str, Any]:
    return {"ok": False, "reason": "backend_error", "status": status, "detail": detail}


@pytest.mark.covers("004.io.populate-backend")
def test_a_valid_asset_is_posted_once_and_its_id_comes_back(send: Send, backend: BackendProcess) -> None:
    assert send(backend.url) == {"ok": True, "asset_id": "a-1", "backend_url": backend.url}
    [request] = backend.seen
    assert (request["path"], request["body"]) == ("/synesthetic-assets/", GOOD)
    assert request["headers"]["content-type"] == "application/json"


@pytest.mark.covers("004.populate.validated-first")
def test_an_invalid_asset_is_never_sent(send: Send, backend: BackendProcess, tmp_path: Path) -> None:
    assert send(backend.url, {"shader": {"uniforms": ["a"]}}) == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [
            {"path": "", "msg": 'missing property "name"'},
            {"path": "/shader/uniforms/0", "msg": "expected number"},
        ],
    }
    shutil.rmtree(tmp_path / "schemas")
    (tmp_path / "schemas").mkdir()
    without_schema = send(backend.url)
    assert without_schema["reason"] == "validation_failed"
    assert backend.seen == []


def test_an_invalid_asset_is_sent_where_that_is_asked_for(send: Send, backend: BackendProcess) -> None:
    assert send(backend.url, {"bad": 1}, validate_first=False)["ok"] is True
    assert send(backend.url, [], validate_first=False)["ok"] is True
    assert [request["body"] for request in backend.seen] == [{"bad": 1}, []]


@pytest.mark.parametrize("validate_first", [True, False])
def test_an_asset_over_the_size_guard_is_never_sent(
    validate_first: bool, send: Send, backend: BackendProcess
) -> None:
    too_large = {"name": "a", "numbers": [1e15] * 65_000}  # 1e15 in the message, longer in the request
    assert send(backend.url, too_large, validate_first=validate_first) == {
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
        ("/huge", error(502, "invalid_response")),
    ],
)
def test_an_answer_that_is_no_success_is_a_backend_error(
    path: str, result: dict[str, Any], send: Send, backend: BackendProcess
) -> None:
    assert send(backend.url, path=path) == result
    assert [request["path"] for request in backend.seen] == [path], "nothing is tried twice, nor elsewhere"


def test_an_id_may_be_a_number(send: Send, backend: BackendProcess) -> None:
    assert send(backend.url, path="/number")["asset_id"] == "17"


@pytest.mark.covers("004.populate.names-the-asset")
@pytest.mark.parametrize("path", ["/nothing", "/nameless", "/empty-name", "/blank-name", "/unseen-name"])
def test_a_success_that_names_no_asset_is_none(path: str, send: Send, backend: BackendProcess) -> None:
    assert send(backend.url, path=path) == error(502, "invalid_response")


@pytest.mark.covers("004.errors.network")
def test_a_refused_connection_is_an_unreachable_network(send: Send) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert send(f"http://127.0.0.1:{port}") == error(503, "network_unreachable")


@pytest.mark.covers("004.backend.timeout")
@pytest.mark.parametrize("path", ["/hang", "/drip", "/garbage"])
def test_a_backend_that_hangs_or_talks_nonsense_is_an_unreachable_network_and_asked_once(
    path: str, send: Send, backend: BackendProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert populating._ANSWER_MS == 5_000
    monkeypatch.setattr(populating, "_ANSWER_MS", 500)
    assert send(backend.url, path=path) == error(503, "network_unreachable")
    assert len(backend.seen) == 1


def test_a_name_that_does_not_resolve_is_an_unreachable_network(send: Send) -> None:
    assert send("http://no-such-host.invalid") == error(503, "network_unreachable")


@pytest.mark.covers("004.backend.path")
@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://host", "/synesthetic-assets/", "http://host/synesthetic-assets/"),
        ("http://host/", "synesthetic-assets/", "http://host/synesthetic-assets/"),
        ("https://host:8443/api/", "/assets", "https://host:8443/api/assets"),
        ("http://host?x=1#y", "/assets", "http://host/assets"),
        ("http://host", "/{id}", "http://host/%7Bid%7D"),
    ],
)
def test_the_path_is_put_below_the_backends_address(library: Library, base: str, path: str, url: str) -> None:
    assert populating.populating(library, backend_at(base, path)).endpoint == url


def test_a_password_in_the_address_is_sent_and_never_shown() -> None:
    made = backend_at("http://ada:s%40cret@host/api", "/assets")
    assert (made.base_url, made.path) == ("http://host/api", "/assets")
    assert made.authorization == "Basic YWRhOnNAY3JldA=="
    assert made.secrets == ("YWRhOnNAY3JldA==", "s@cret")


@pytest.mark.parametrize(
    "address", ["", "host", "ftp://host", "http://", "http://host:port", "http://[", "http://hö.st"]
)
def test_an_address_that_no_backend_can_have_is_refused(address: str) -> None:
    with pytest.raises(BadBackend, match="the backend's address"):
        backend_at(address, "/assets")


@pytest.mark.parametrize("path", ["/a b", "/../up", "/#part"])
def test_a_path_that_no_request_can_have_is_refused(path: str) -> None:
    with pytest.raises(BadBackend, match="the path below the backend's address must"):
        backend_at("http://host", path)


def test_proxies_of_the_environment_are_not_used(
    send: Send, backend: BackendProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert send(backend.url)["ok"] is True


def test_a_password_may_have_any_bytes() -> None:
    found = backend_at("http://u:p%C3%A9\udcff@host/", "/a")
    assert found.authorization is not None
    assert base64.b64decode(found.authorization.removeprefix("Basic ")) == b"u:p\xc3\xa9\xff"
    assert found.base_url == "http://host/"
