"""Whatever clients and APIs do at once, the memory that it takes is bounded, and nobody else notices."""

from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.nodes import NodeClient, Nodes
from support.portbook_process import http_server
from support.running_processes import wait_until

CLIENTS = 50
REQUEST = b"GET /tools HTTP/1.1\r\nhost: localhost\r\n\r\n" * 2000

# What the server may hold for one of them: a read of the event loop, and what waits to be read.
MOST_BYTES_EACH = 600_000


def resident_bytes(process: int) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.covers("design.http-server.bounded-memory")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_clients_that_never_read_are_not_read_from(tmp_path: Path) -> None:
    with http_server(cwd=tmp_path) as server, contextlib.ExitStack() as held:
        host, port = server.url.removeprefix("http://").split(":")
        for _ in range(20):
            assert server.request("/tools").status == 200
        before = resident_bytes(server.process.pid)
        for _ in range(CLIENTS):
            raw = held.enter_context(socket.create_connection((host, int(port)), timeout=30))
            raw.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    raw.send(REQUEST)
        assert server.request("/livez").status == 200
        grown = resident_bytes(server.process.pid) - before
        assert grown < CLIENTS * MOST_BYTES_EACH
        assert server.request("/tools").status == 200


UPLOADS = 160
UPLOAD = b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
# What all of them may have sent, and what the system does not take back at once.
MOST_UNFINISHED = 67_108_864 + 40_000_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_messages_that_never_end_take_a_bounded_amount_of_memory_together(tmp_path: Path) -> None:
    with http_server(cwd=tmp_path) as server, contextlib.ExitStack() as held:
        host, port = server.url.removeprefix("http://").split(":")
        assert server.request("/livez").status == 200
        before = resident_bytes(server.process.pid)
        for _ in range(UPLOADS):
            raw = held.enter_context(socket.create_connection((host, int(port)), timeout=60))
            raw.sendall(UPLOAD + b"content-length: 1000000\r\n\r\n" + b"x" * 990_000)
        assert server.request("/livez").status == 200
        assert resident_bytes(server.process.pid) - before < MOST_UNFINISHED


TOOLS = """
from portbook import Toolset

toolset = Toolset("large")

@toolset.tool(effect="read")
def large() -> str:
    return "x" * 8_000_000
"""

ANSWERS = 30
# What all of them may have waiting, and what making one of them takes for a moment.
MOST_BYTES = 67_108_864 + 70_000_000


@pytest.mark.covers("design.http-server.bounded-backlog")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_answers_that_nobody_reads_take_a_bounded_amount_of_memory_together(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    body = b'{"session_id":"s","tool_id":"large","args":{}}'
    head = b"POST /execute HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    request = b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)
    with (
        http_server(cwd=tmp_path, tools=("tools.py",)) as server,
        contextlib.ExitStack() as held,
    ):
        host, port = server.url.removeprefix("http://").split(":")
        answer = server.request("/execute", body, content_type="application/json")
        assert (answer.status, len(answer.body) > 8_000_000) == (200, True)
        before = resident_bytes(server.process.pid)
        for _ in range(ANSWERS):
            raw = held.enter_context(socket.socket())
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.settimeout(60)
            raw.connect((host, int(port)))
            raw.sendall(request)
            raw.recv(1)  # its answer is there, and the rest of it waits
        assert resident_bytes(server.process.pid) - before < MOST_BYTES
        assert server.request("/livez").status == 200


# As a value it takes thirty times as much memory, and one secret has it wait for a thread that redacts it.
RESULT = b"[" + b"{}," * 100_000 + b'"AKIAIOSFODNN7EXAMPLE"]'
RESULTS = 40
# Three results as values, on the loop and in two threads, each with a copy that is being made of it.
MOST_AS_VALUES = 3 * 2 * 30 * len(RESULT)


class Api(socketserver.BaseRequestHandler):
    """Answers every request with the same large result, and counts them."""

    answered = threading.Semaphore(0)

    def handle(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        while self.request.recv(65_536).endswith(b"\r\n\r\n"):
            self.request.sendall(head % len(RESULT) + RESULT)
            self.answered.release()


@contextlib.contextmanager
def api() -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Api) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.covers("design.http-server.bounded-results")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_large_results_that_come_at_once_wait_for_their_turn_as_bytes(tmp_path: Path) -> None:
    body = b'{"session_id":"s","tool_id":"api.get","args":{}}'
    head = b"POST /execute HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    request = b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)
    with api() as port, contextlib.ExitStack() as held:
        tool = "[http.api.tools.get]\nmethod = 'GET'\npath = '/'\n"
        (tmp_path / "portbook.toml").write_text(f"[http.api]\nbase_url = 'http://127.0.0.1:{port}'\n{tool}")
        server = held.enter_context(http_server(cwd=tmp_path, tools=()))
        answer = server.request("/execute", body, content_type="application/json")
        assert (answer.status, b"AKIA" in answer.body) == (200, False)
        assert Api.answered.acquire(timeout=30)
        before = resident_bytes(server.process.pid)
        host, own_port = server.url.removeprefix("http://").split(":")
        for _ in range(RESULTS):
            raw = held.enter_context(socket.create_connection((host, int(own_port)), timeout=30))
            raw.sendall(request)
        for _ in range(RESULTS):
            assert Api.answered.acquire(timeout=60)
        assert server.request("/livez").status == 200
        grown = resident_bytes(server.process.pid) - before
        # What waits is held as it came and as it is written, within what the API may send.
        assert grown < RESULTS * 3 * len(RESULT) + MOST_AS_VALUES


WAITING = """
import asyncio
import os
from portbook import Toolset

toolset = Toolset("waiting")

@toolset.tool(effect="read", timeout_ms=120_000)
async def wait(text: str) -> int:
    with open("began", "a") as began:
        began.write(".")
    while not os.path.exists("go on"):
        await asyncio.sleep(0.01)
    return len(text)
"""


@pytest.mark.covers("design.http-server.workload-of-sessions")
def test_a_call_of_a_session_takes_its_room_until_it_ends_also_after_its_client_has_left(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.py").write_text(WAITING)
    # A comma may begin one more value, so that this may take 72 MB: there is room for three of them.
    large = {"name": "wait", "arguments": {"text": "," * 1_000_000}}

    def began() -> int:
        path = tmp_path / "began"
        return len(path.read_text()) if path.exists() else 0

    with http_server(cwd=tmp_path, tools=("tools.py",)) as server:
        client = NodeClient(Nodes(tmp_path, [server]), node=0, second=0)
        calls = [client.start(0, "tools/call", large) for _ in range(3)]
        wait_until(lambda: began() == 3)
        for call in calls:
            call.leave()
        refused = client.start(0, "tools/call", large).ended()
        assert refused.status == 503
        assert refused.answer()["error"]["data"]["reason"] == "TOO_MANY_IN_FLIGHT"
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": 2}}  # after initialize
        assert client.send(0, cancelled).status == 202

        def has_room() -> bool:
            call = client.start(0, "tools/call", large)
            call.until(lambda: call.is_over or began() == 4)
            return not call.is_over

        wait_until(has_room)
        (tmp_path / "go on").touch()
