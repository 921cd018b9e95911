"""Several listeners at one socket: connections go to the one that has the fewest, and none is lost."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from portbook.doors.http.server.listeners_of_workers import (
    ConnectionTally,
    SharedListener,
    bind,
    create_tally,
)

PATIENCE_S = 60.0


class Named(asyncio.Protocol):
    """Says which listener took the connection, and counts them."""

    def __init__(self, name: bytes, tally: ConnectionTally, held: list[asyncio.Transport]) -> None:
        self._name = name
        self._tally = tally
        self._held = held

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._held.append(transport)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # uvloop's own
        self._tally.set(len(self._held))
        self._held[-1].write(self._name)


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = create_tally(2)
    yield made
    os.close(made)


def listen(at: socket.socket, name: str, descriptor: int, place: int) -> tuple[SharedListener, list[Any]]:
    tally, held = ConnectionTally(descriptor, place), list[asyncio.Transport]()
    copy = socket.socket(fileno=os.dup(at.fileno()))
    return SharedListener(copy, lambda: Named(name.encode(), tally, held), tally), held


async def taken_by(address: Any) -> bytes:
    reader, writer = await asyncio.wait_for(asyncio.open_connection(*address), PATIENCE_S)
    name = await asyncio.wait_for(reader.readexactly(1), PATIENCE_S)
    writer.close()
    return name


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def test_the_one_that_has_more_leaves_the_next_to_the_other(descriptor: int) -> None:
    async def main() -> None:
        with bind("127.0.0.1", 0) as at:
            (first, held), (second, more) = listen(at, "a", descriptor, 0), listen(at, "b", descriptor, 1)
            address = at.getsockname()
            names = [await taken_by(address) for _ in range(6)]
            assert sorted(names) == [b"a", b"a", b"a", b"b", b"b", b"b"]
            await first.close()
            await second.close()
            for transport in (*held, *more):
                transport.close()

    run(main())


def test_what_waits_in_the_queue_goes_to_the_one_that_is_left(descriptor: int) -> None:
    async def main() -> None:
        with bind("127.0.0.1", 0) as at:
            (first, held), (second, more) = listen(at, "a", descriptor, 0), listen(at, "b", descriptor, 1)
            waiting = [socket.create_connection(at.getsockname()) for _ in range(5)]
            await first.close()  # nothing was taken yet: the loop had no turn
            loop = asyncio.get_running_loop()
            names: list[bytes] = []
            for client in waiting:
                client.setblocking(False)
                names.append(await asyncio.wait_for(loop.sock_recv(client, 1), PATIENCE_S))
                client.close()
            assert names == [b"b"] * 5
            assert not held
            await second.close()
            for transport in more:
                transport.close()

    run(main())


def test_one_that_is_alone_ahead_takes_what_nobody_else_takes(descriptor: int) -> None:
    async def main() -> None:
        with bind("127.0.0.1", 0) as at:
            busy = ConnectionTally(descriptor, 1)
            busy.set(0)  # it has the fewest, and does not come to take more
            listener, held = listen(at, "a", descriptor, 0)
            assert [await taken_by(at.getsockname()) for _ in range(4)] == [b"a"] * 4
            await listener.close()
            for transport in held:
                transport.close()

    run(main())
