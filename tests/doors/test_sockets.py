"""Sockets: who is silent keeps nobody out, and what is somebody else's is left alone."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from portbook.doors import sockets as listening
from portbook.doors.sockets import ListeningDoor, UnixSocket
from portbook.doors.stdio import Reader, Writer


class Echo:
    """Says everything again."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer
        self.stop = reader.stop

    async def serve(self) -> None:
        while chunk := await self._reader.read():
            await self._writer.write(chunk)


class Stuck(Echo):
    """Has something under way that never ends, as long as the other side is there."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        super().__init__(reader, writer)
        self.stop = lambda: None


class Torn(Echo):
    """Ends as a network does."""

    async def serve(self) -> None:
        raise TimeoutError(110, "Connection timed out")


def served(path: Path, talk: Callable[[], Awaitable[None]], stream: type[Echo] = Echo) -> None:
    async def run() -> None:
        made = UnixSocket(path)
        door = ListeningDoor(made.listener, stream)
        serving = asyncio.create_task(door.serve())
        try:
            async with asyncio.timeout(30):
                await talk()
        finally:
            door.stop()
            await serving
            made.remove()

    asyncio.run(run())


async def said_again(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"a")
    await writer.drain()
    return await reader.read(1) == b"a"


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("stream", [Echo, Stuck])
def test_the_connection_that_is_silent_for_longest_makes_room(
    stream: type[Echo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_MAX_CONNECTIONS", 3)
    monkeypatch.setattr(listening, "_GRACE_S", 0.01)
    path = tmp_path / "socket"

    async def talk() -> None:
        clients = [await asyncio.open_unix_connection(path) for _ in range(3)]
        for client in (*clients, clients[0]):
            assert await said_again(*client)
        clients.append(await asyncio.open_unix_connection(path))
        assert await said_again(*clients[3])
        assert await clients[1][0].read() == b"", "it was closed"
        assert await said_again(*clients[0])
        assert await said_again(*clients[2])
        for _, writer in clients:
            writer.close()

    served(path, talk, stream)


def test_a_connection_that_ended_holds_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "socket"

    async def talk() -> None:
        async def once() -> int:
            reader, writer = await asyncio.open_unix_connection(path)
            assert await said_again(reader, writer)
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            return open_descriptors()

        gc.collect()  # what earlier tests left open is closed now, and not while it is counted
        first = await once()
        assert {await once() for _ in range(20)} == {first}

    served(path, talk)


def test_an_ending_of_the_networks_is_one_like_any_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "socket"

    async def talk() -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        writer.close()

    served(path, talk, Torn)
    assert caplog.records == []


def test_the_socket_of_another_process_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    ours = UnixSocket(path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(path))
        ours.remove()
        assert path.is_socket()
    path.unlink()
    again = UnixSocket(path)
    again.remove()
    assert not path.exists()
