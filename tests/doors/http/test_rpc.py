"""The HTTP door, as a process: routes, guards, limits."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.app.assemble import assemble
from portbook.audit.jsonl import MemorySink
from portbook.doors.http.rpc import rpc
from portbook.settings import load_settings
from support.portbook_process import HttpServer, http_server, invoke, records


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[HttpServer]:
    with http_server(cwd=folder) as server:
        yield server


@pytest.mark.parametrize("tool", ["echo", "echo_in_thread", "echo_later"])
def test_each_way_to_run_a_function_answers_over_http(server: HttpServer, tool: str) -> None:
    response = server.rpc(invoke(tool, {"text": "x"}))
    assert (response.status, response.json) == (200, {"jsonrpc": "2.0", "id": 1, "result": "x"})
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "application/json"}, 200),
        ({"content_type": "Application/JSON; charset=utf-8"}, 200),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/jsonp"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"host": "localhost"}, 200),
        ({"host": "LOCALHOST:1234"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "evil.test"}, 403),
        ({"host": "127.0.0.1.evil.test"}, 403),
        ({"host": "localhost@evil.test"}, 403),
        ({"host": ""}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "localhost:80", "origin": "http://localhost:80"}, 200),
        ({"host": "localhost:80", "origin": "http://localhost:81"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.test"}, 403),
        ({"origin": "http://[::1"}, 403),
    ],
)
def test_only_json_for_this_host_from_this_origin_is_read(
    server: HttpServer, headers: dict[str, str], status: int
) -> None:
    response = server.rpc(invoke("echo", {"text": "x"}), **headers)
    assert response.status == status
    assert ("result" in response.json) == (status == 200)
    assert response.json["jsonrpc"] == "2.0"


def test_a_refusal_before_reading_is_recorded(server: HttpServer, folder: Path) -> None:
    before = len(records(folder / "runs"))
    server.rpc(invoke("echo", {"text": "x"}), host="evil.test")
    (record,) = records(folder / "runs")[before:]
    assert (record["status"], record["error"]["reason"]) == ("error", "FOREIGN_HOST")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/rpc", 405), ("POST", "/", 405), ("GET", "/nothing", 404), ("PUT", "/rpc", 405)],
)
def test_other_methods_and_paths_are_turned_away(
    server: HttpServer, method: str, path: str, status: int
) -> None:
    assert server.request(path, b"{}" if method != "GET" else None, method=method).status == status


def test_an_oversize_body_is_answered_and_the_next_request_is_served(server: HttpServer) -> None:
    room = 1_048_576 - len(invoke("echo", {"text": ""}))
    assert server.rpc(invoke("echo", {"text": "x" * room})).status == 200
    for extra in (1, 16_000_000):
        response = server.rpc(invoke("echo", {"text": "x" * (room + extra)}))
        assert response.status == 413
        assert response.json["result"]["errors"] == [{"path": "", "msg": "payload_too_large"}]
    assert server.rpc(invoke("echo", {"text": "x"})).status == 200


def test_a_chunked_body_is_read_whole(server: HttpServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    frame = invoke("echo", {"text": "x"})
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(
            b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        for piece in (frame[:10], frame[10:]):
            raw.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        raw.sendall(b"0\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'"result":"x"}')


def test_a_sender_that_leaves_midway_disturbs_nobody(server: HttpServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(
            b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 900\r\n\r\n{"
        )
    assert server.rpc(invoke("echo", {"text": "x"})).status == 200


def test_a_head_that_does_not_end_is_cut_off(server: HttpServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nx: ")
        answer = b""
        try:
            for _ in range(64):
                raw.sendall(b"a" * 65_536)
            answer = raw.recv(65536)
        except OSError:
            pass  # cut off while it was still sending
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431")
    assert server.rpc(invoke("echo", {"text": "x"})).status == 200


def test_a_large_body_in_one_piece_with_its_head_is_not_taken_for_a_large_head(server: HttpServer) -> None:
    assert len(server.rpc(invoke("echo", {"text": "x" * 500_000})).json["result"]) == 500_000


def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("portbook.doors.http.request._BODY_SECONDS", 0.01)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(event: Any) -> None:
        sent.append(event)

    settings = load_settings(None, {}, {"docs.enabled": False}, tmp_path)
    assembled = assemble(settings, is_exposed=False, sink=MemorySink())
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]

    async def give_up() -> None:
        await rpc(assembled.boundary).serve({"headers": headers}, receive, send)
        await assembled.close()

    asyncio.run(give_up())
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_a_notification_is_accepted_without_an_answer(server: HttpServer) -> None:
    response = server.rpc(b'{"jsonrpc":"2.0","method":"notifications/whatever"}')
    assert (response.status, response.body) == (202, b"")


def test_an_envelope_without_an_id_never_runs_and_is_answered_400(server: HttpServer, folder: Path) -> None:
    frame = json.loads(invoke("wait_for", {"path": str(folder / "must-not-exist")}))
    del frame["id"]
    response = server.rpc(json.dumps(frame).encode())
    assert (response.status, response.json["id"]) == (400, None)
    assert response.json["error"]["data"]["canonical_code"] == "INVALID_INPUT"
    assert not (folder / "must-not-exist").exists()


def test_a_binding_beyond_loopback_needs_a_key(tmp_path: Path) -> None:
    with http_server("--host", "0.0.0.0", cwd=tmp_path) as server:
        open_door = HttpServer(server.url.replace("0.0.0.0", "127.0.0.1"), server.process)
        response = open_door.rpc(invoke("echo", {"text": "x"}))
        assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
        assert b"echo" not in open_door.request("/").body


def test_the_page_is_for_this_host_alone(server: HttpServer) -> None:
    assert server.request("/", host="evil.test").status == 403
    assert server.request("/", method="HEAD").body == b""


def test_the_page_lists_the_tools_and_loads_nothing_from_elsewhere(server: HttpServer) -> None:
    page = server.request("/")
    assert page.status == 200
    assert b"echo_in_thread" in page.body
    assert b"Say it again, from a worker thread." in page.body
    assert b"{{" not in page.body
    assert b"http://" not in page.body
    assert b"https://" not in page.body.replace(b"https://json-schema.org/draft/2020-12/schema", b"")
    assert "default-src 'none'" in page.headers["content-security-policy"]
