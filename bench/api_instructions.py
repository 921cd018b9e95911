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
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from bench.callgrind import between_marks, callgrind, whole_life
from bench.child import Child
from bench.servers.before_an_api import TABLE
from bench.wire import check, frames, greeting, initialized

__all__ = ["API", "CLIENT", "count_of_an_api"]

API: Final = "a tool of an HTTP API"
CLIENT: Final = "our HTTP client alone"

_SERVERS: Final = Path(__file__).resolve().parent / "servers"

# Within the connections that a destination may have.
_CALLS: Final = 64
# Every connection is open, and every cache on the way is filled.
_WARM_UP: Final = 2
_COUNTED: Final = 4

# Under callgrind, and beside other work, a start takes minutes.
_PATIENCE_S: Final = 500
_TARGET: Final = re.compile(rb"GET /echo\?text=message%20([0-9]+) HTTP/1\.1\r\n(?:.+\r\n)+\r\n")


class _Api:
    """An API whose operation is the echo; it answers when it is told to."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=_CALLS)
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
                asked = _TARGET.fullmatch(key.fileobj.recv(65_536))
                assert asked is not None  # a small request comes whole
                taken.append((key.fileobj, asked[1]))
        return taken


def count_of_an_api(serve: list[str], settings: str) -> dict[str, int]:
    """Return the instructions of one call each; `serve` is the command without its options.

    Raises `Missing` without valgrind, `WrongAnswer` where an answer is not an echo.
    """
    return {API: _count_tool(serve, settings), CLIENT: _count_client()}


def _count_tool(serve: list[str], settings: str) -> int:
    with TemporaryDirectory(prefix="portbook-bench-") as name, _Api() as api:
        Path(name, "portbook.toml").write_text(settings + TABLE.format(url=api.url))
        command = callgrind([sys.executable, *serve, "--stdio"])
        with Child(command, Path(name), {"PYTHONHASHSEED": "0"}) as child:
            _greet(child)
            for _ in range(_WARM_UP):
                _exchange(child, api, "api.echo")
            _mark(child)
            for _ in range(_COUNTED):
                _exchange(child, api, "api.echo")
            _mark(child)
        return between_marks(Path(name))[0] // (_COUNTED * _CALLS)


def _count_client() -> int:
    """Return the instructions of many calls less those of few: the client marks nothing."""
    totals: list[int] = []
    for times in (_WARM_UP, _WARM_UP + _COUNTED):
        with TemporaryDirectory(prefix="portbook-bench-") as name, _Api() as api:
            command = callgrind([sys.executable, str(_SERVERS / "api_client.py"), api.url])
            with Child(command, Path(name), {"PYTHONHASHSEED": "0"}) as child:
                _greet(child)
                for _ in range(times):
                    _exchange(child, api, "api.echo")
            totals.append(whole_life(Path(name)))
    return (totals[1] - totals[0]) // (_COUNTED * _CALLS)


def _greet(child: Child) -> None:
    child.write(greeting() + b"\n")
    child.read_lines(1)
    child.write(initialized() + b"\n")


def _exchange(child: Child, api: _Api, tool: str) -> None:
    """Call as often as is counted at once, and check the answers."""
    numbers = range(1_000, 1_000 + _CALLS)  # of as many digits each time
    child.write(_lines(frames("mcp", tool, numbers)))
    asked = api.take(_CALLS)
    os.kill(child.pid, signal.SIGSTOP)
    try:
        for connection, number in asked:
            body = b'{"text":"message %b"}' % number
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            connection.sendall(head % len(body) + body)
    finally:
        os.kill(child.pid, signal.SIGCONT)
    check(child.read_lines(_CALLS), numbers)


def _mark(child: Child) -> None:
    child.write(_lines(frames("mcp", "mark", [1])))
    child.read_lines(1)


def _lines(calls: Sequence[bytes]) -> bytes:
    return b"".join(call + b"\n" for call in calls)
