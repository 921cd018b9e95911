"""The instructions of a call of an HTTP API's tool, and of the same request through our HTTP client alone.

This process is the API, too. What is counted is stopped while all answers are sent, so that one turn of its
loop finds all of them: otherwise how many it finds would depend on how busy the machine is.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from bench.callgrind import begin, between_marks, callgrind
from bench.child import Child
from bench.wire import check, frames

__all__ = ["API", "CALLS", "CLIENT", "WARM_UP", "HeldApi", "count_client", "exchange"]

API: Final = "a tool of an HTTP API"
CLIENT: Final = "our HTTP client alone"

_TOOL: Final = "api.echo"
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_SERVERS: Final = Path(__file__).resolve().parent / "servers"

# Within the connections that a destination may have.
CALLS: Final = 64
# Every connection is open, and every cache on the way is filled.
WARM_UP: Final = 2

# Under callgrind, and beside other work, a start takes minutes.
_PATIENCE_S: Final = 500
_TARGET: Final = re.compile(rb"GET /echo\?text=message%20([0-9]+) HTTP/1\.1\r\n(?:.+\r\n)+\r\n")


class HeldApi:
    """An API whose operation is the echo; it answers when it is told to."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=CALLS)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()

    def take(self, count: int) -> list[tuple[socket.socket, bytes]]:
        """Return `count` requests, each with its connection and the number that it is to say again."""
        taken: list[tuple[socket.socket, bytes]] = []
        while len(taken) < count:
            ready = self._selector.select(_PATIENCE_S)
            if not ready:
                raise TimeoutError("a request never came")
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                if key.fileobj is self._listening:
                    self._selector.register(self._listening.accept()[0], selectors.EVENT_READ)
                    continue
                request = key.fileobj.recv(65_536)
                if not request:
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()
                    continue
                asked = _TARGET.fullmatch(request)
                assert asked is not None  # a small request comes whole
                taken.append((key.fileobj, asked[1]))
        return taken


def exchange(child: Child, api: HeldApi, first: int = 1_000) -> None:
    """Call the API's tool as often as is counted, all at once, and check the answers."""
    numbers = range(first, first + CALLS)
    child.write(b"".join(call + b"\n" for call in frames("mcp", _TOOL, numbers)))
    asked = api.take(CALLS)
    os.kill(child.pid, signal.SIGSTOP)
    try:
        for connection, number in asked:
            body = b'{"text":"message %b"}' % number
            connection.sendall(_HEAD % len(body) + body)
    finally:
        os.kill(child.pid, signal.SIGCONT)
    check(child.read_lines(CALLS), numbers)


def count_client() -> int:
    """Return the instructions of one call through our HTTP client alone.

    Raises `Missing` without valgrind, `WrongAnswer` where an answer is not an echo.
    """
    with TemporaryDirectory(prefix="portbook-bench-") as name, HeldApi() as api:
        client = [sys.executable, str(_SERVERS / "api_client.py"), api.url, "--unhurried"]
        command = callgrind(client, is_counting=False)
        with Child(command, Path(name), {"PYTHONHASHSEED": "0"}) as child:
            for _ in range(WARM_UP):
                exchange(child, api)
            begin(child.pid)
            for _ in range(2):  # before and after
                child.write(frames("mcp", "mark", [1])[0] + b"\n")
                child.read_lines(1)
                exchange(child, api)
            child.kill()
        return between_marks(Path(name))[0] // CALLS
