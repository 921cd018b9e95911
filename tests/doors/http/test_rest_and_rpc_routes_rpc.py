"""The HTTP door, as a process: routes, guards, limits."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from support.portbook_process import HttpServer, invoke, records


@pytest.mark.parametrize("tool", ["echo", "echo_in_thread", "echo_later"])
def test_each_way_to_run_a_function_answers_over_http(server: HttpServer, tool: str) -> None:
    response = server.rpc(invoke(tool, {"text": "x"}))
    assert (response.status, response.json) == (200, {"jsonrpc": "2.0", "id": 1, "result": "x"})
    assert response.headers["content-type"] == "application/json"


def test_a_refusal_before_reading_is_recorded(server: HttpServer, folder: Path) -> None:
    before = len(records(folder / "runs"))
    server.rpc(invoke("echo", {"text": "x"}), host="evil.test")
    (record,) = records(folder / "runs")[before:]
    assert (record["status"], record["error"]["reason"]) == ("error", "FOREIGN_HOST")


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
