"""Clients that send requests without end and read no answers cost little memory, and nobody else notices."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from support.portbook_process import http_server

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
