"""Every frame leaves one record at every door, those too that have no effect and no answer."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import handshake
from support.portbook_process import (
    child,
    environment,
    http_server,
    over_stdio,
    records,
)

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("2025-03-26")}
CANCELLATION = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}
RESPONSE = {"jsonrpc": "2.0", "id": "x", "result": {}}
ERROR = {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "x"}}

# What has no effect, and the reason in its record.
IGNORED = [
    (CANCELLATION, "IGNORED"),
    (RESPONSE, "IGNORED"),
    (ERROR, "IGNORED"),
    ({**RESPONSE, **ERROR}, "NOT_JSONRPC"),
    ({"jsonrpc": "2.0", "method": "notifications/no_such"}, "UNKNOWN_METHOD"),
]
PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 1},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}

# What no dialect claims, and the dialects' own words are missing in.
UNCLAIMED = [
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"params":{"_meta":{"portbook/attempt":3}}}',
    b'{"jsonrpc":"2.0","id":1,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","method":"nope"}',
    b'{"id":1}',
    b"{}",
    b"[]",
    b"5",
    b"{",
]


def encoded(message: object) -> bytes:
    return json.dumps(message).encode()


def reasons(log_dir: Path) -> list[str]:
    return [(record["error"] or {}).get("reason", "OK") for record in records(log_dir)]


def through_stdio(folder: Path, frames: list[bytes]) -> int:
    return len(over_stdio(*frames, cwd=folder, options=("--log-dir", str(folder / "runs"))).answers)


def through_a_socket(folder: Path, frames: list[bytes]) -> int:
    path = folder / "adapter.sock"
    env = environment(MCP_ENDPOINT="socket", MCP_SOCKET_PATH=str(path), MCP_READY_FILE=str(folder / "ready"))
    command = [sys.executable, "-m", "mcp", "--log-dir", str(folder / "runs")]
    with child(command, cwd=folder, env=env, stderr=-1) as process:
        while not process.stderr.readline().startswith(b"mcp:ready"):
            pass
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(str(path))
            client.sendall(b"".join(frame + b"\n" for frame in frames))
            client.shutdown(socket.SHUT_WR)
            with client.makefile("rb") as answers:
                return len(answers.readlines())


def through_rpc(folder: Path, frames: list[bytes]) -> int:
    with http_server("--log-dir", str(folder / "runs"), cwd=folder) as server:
        return sum(bool(server.rpc(frame).body) for frame in frames)


def through_mcp(folder: Path, frames: list[bytes]) -> int:
    headers = {"content_type": "application/json", "accept": "application/json, text/event-stream"}
    answered = 0
    with http_server("--log-dir", str(folder / "runs"), cwd=folder) as server:
        for frame in frames:
            answer = server.request("/mcp", frame, **headers)
            answered += bool(answer.body)
            if "mcp-session-id" in answer.headers:
                headers["mcp_session_id"] = answer.headers["mcp-session-id"]
    return answered


LINES = [through_stdio, through_a_socket]
every_door = pytest.mark.parametrize("door", [*LINES, through_rpc, through_mcp])


@pytest.mark.covers("design.every-frame-has-a-record")
@every_door
def test_what_is_ignored_leaves_one_record(door: Callable[[Path, list[bytes]], int], tmp_path: Path) -> None:
    answered = door(tmp_path, [encoded(message) for message, _ in IGNORED])
    assert answered == 0
    found = reasons(tmp_path / "runs")
    if door is through_rpc:  # speaks no MCP: it knows no such method
        assert found == ["UNKNOWN_METHOD", *(reason for _, reason in IGNORED[1:])]
    else:
        assert found == [reason for _, reason in IGNORED]


@pytest.mark.parametrize("door", [*LINES, through_mcp])
def test_in_a_session_only_what_is_heeded_leaves_none(
    door: Callable[[Path, list[bytes]], int], tmp_path: Path
) -> None:
    batch = [CANCELLATION, RESPONSE, INITIALIZED, {"jsonrpc": "2.0", "id": 1, "method": "ping"}]
    messages: list[Any] = [HELLO, INITIALIZED, CANCELLATION, PROGRESS, RESPONSE, {**RESPONSE, **ERROR}, batch]
    assert door(tmp_path, [encoded(message) for message in messages]) == 2
    expected = ["OK", "IGNORED", "IGNORED", "IGNORED", "NOT_JSONRPC", "IGNORED", "IGNORED", "OK"]
    assert reasons(tmp_path / "runs") == expected


def test_a_cancellation_in_a_batch_is_heeded_and_leaves_the_record_of_its_call(tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    (tmp_path / "waiting.py").write_text(
        "import asyncio\nfrom portbook import Toolset\ntoolset = Toolset('waiting')\n"
        "@toolset.tool(effect='read')\nasync def wait() -> str:\n    await asyncio.Event().wait()\n"
    )
    command = [sys.executable, "-m", "portbook", "serve", "--stdio", "waiting.py"]
    with child(command, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1) as process:
        cancellation = {**CANCELLATION, "params": {"requestId": 7}}
        frames = [encoded(each) + b"\n" for each in (HELLO, call, [cancellation])]
        out, _ = process.communicate(b"".join(frames), timeout=30)
    assert len(out.splitlines()) == 1
    assert reasons(tmp_path / "runs") == ["OK", "CANCELLED"]


JSON_HEAD = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
HOST = "Host: 127.0.0.1\r\n"


def raw(line: str, headers: str, body: bytes = b"", length: int | None = None) -> bytes:
    announced = len(body) if length is None else length
    counted = f"Content-Length: {announced}\r\n" if announced else ""
    return f"{line} HTTP/1.1\r\n{headers}{counted}\r\n".encode() + body


# What carried a message that the door did not read: its status, and the reason in its record.
UNREAD = [
    *(
        (f"{path} {name}", raw(f"POST {path}", headers + JSON_HEAD, b"{}"), b"400", "BAD_HOST")
        for path in ("/rpc", "/mcp", "/execute", "/tools/echo")
        for name, headers in (("without a Host", ""), ("with two", HOST + HOST))
    ),
    *(
        (f"{path} by {method}", raw(f"{method} {path}", HOST + JSON_HEAD, b"{}"), b"405", "WRONG_HTTP_METHOD")
        for method, path in (
            *(("PUT", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp")),
            *(("PUT", "/rpc"), ("PUT", "/execute"), ("PUT", "/tools/echo")),
        )
    ),
    *(
        (f"{path} cut off", raw(f"POST {path}", HOST + JSON_HEAD, b'{"jsonrpc"', 50), b"", "CANCELLED")
        for path in ("/rpc", "/mcp", "/execute")
    ),
]

# What carries no message.
EMPTY = [
    raw("GET /mcp", HOST + JSON_HEAD),
    raw("DELETE /mcp", HOST + JSON_HEAD),
    raw("PUT /rpc", HOST + JSON_HEAD),
    raw("GET /livez", HOST),
    raw("GET /livez", HOST + HOST),
    raw("GET /nothing", HOST),
    raw("POST /rpc", HOST + JSON_HEAD, b"", 50),
]


def status_of(address: tuple[str, int], request: bytes) -> bytes:
    """Send a request and nothing more; return the status of the answer, if there is one."""
    with socket.create_connection(address, timeout=30) as client:
        client.sendall(request)
        if b"Content-Length: 50" in request:  # the rest never comes
            client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as answer:
            return answer.readline()[9:12]


def test_a_message_that_the_http_door_does_not_read_leaves_one_record(tmp_path: Path) -> None:
    with http_server("--log-dir", str(tmp_path / "runs"), cwd=tmp_path) as server:
        address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        for name, request, status, _ in UNREAD:
            assert status_of(address, request) == status, name
        for request in EMPTY:
            status_of(address, request)
        assert server.rpc(encoded({"jsonrpc": "2.0", "id": 1, "method": "nothing"})).status == 404
    assert reasons(tmp_path / "runs") == [*(reason for *_, reason in UNREAD), "UNKNOWN_METHOD"]


def test_a_member_of_a_batch_is_cancelled_like_any_request(tmp_path: Path) -> None:
    wait = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    ping = {"jsonrpc": "2.0", "id": 8, "method": "ping"}
    (tmp_path / "waiting.py").write_text(
        "import asyncio\nfrom portbook import Toolset\ntoolset = Toolset('waiting')\n"
        "@toolset.tool(effect='read')\nasync def wait() -> str:\n    await asyncio.Event().wait()\n"
    )
    command = [sys.executable, "-m", "portbook", "serve", "--stdio", "waiting.py"]
    with child(command, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1) as process:
        cancellation = {**CANCELLATION, "params": {"requestId": 7}}
        again = {**wait, "id": 9}
        frames = [HELLO, [wait, ping], cancellation, [again], {**CANCELLATION, "params": {"requestId": 9}}]
        out, _ = process.communicate(b"".join(encoded(each) + b"\n" for each in frames), timeout=30)
    _, batch = map(json.loads, out.splitlines())  # of the other batch, nothing is left to answer
    assert [answer["id"] for answer in batch] == [8]
    assert sorted(reasons(tmp_path / "runs")) == ["CANCELLED", "CANCELLED", "OK", "OK"]


@pytest.mark.covers("000.log.unclaimed")
def test_what_no_dialect_claims_has_the_same_record_at_every_door(tmp_path: Path) -> None:
    views: dict[str, list[dict[str, Any]]] = {}
    for door in (through_stdio, through_rpc, through_mcp):
        folder = tmp_path / door.__name__
        folder.mkdir()
        door(folder, UNCLAIMED)
        views[door.__name__] = [_without_volatile(record) for record in records(folder / "runs")]
    assert {view["metadata"]["schemaVersion"] for view in views["through_stdio"]} == {"1.0.0"}
    assert views["through_stdio"] == views["through_rpc"]
    assert [view["metadata"] for view in views["through_mcp"]][:5] == [
        view["metadata"] for view in views["through_stdio"]
    ][:5]


def _without_volatile(record: dict[str, Any]) -> dict[str, Any]:
    volatile = ("ts", "traceId", "spanId", "requestId", "durationMs", "transport", "route")
    return {name: value for name, value in record.items() if name not in volatile}
