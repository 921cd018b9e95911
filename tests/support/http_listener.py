"""Our HTTP server in this process, on a free port, with routes and limits of a test's own."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from portbook.doors.http.router import Route, Router
from portbook.doors.http.server.connection_limits_deadlines_and_overload import Deadlines
from portbook.doors.http.server.http_server_and_shutdown import HttpServer, ServerOptions
from portbook.doors.http.server.listeners_of_workers import bind
from portbook.net.allowed_hosts_and_origins import Hosts

# Short enough to wait for, and long enough for a busy machine.
SHORT = Deadlines(
    first_byte_s=0.3,
    head_s=0.3,
    body_s=0.3,
    idle_s=0.3,
    write_s=0.3,
    drain_s=0.3,
    reserve_s=0.1,
    sweep_s=0.02,
)
PATIENCE_S = 20


@dataclass
class Peer:
    """A raw connection of a client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        if self.writer.transport.is_closing():
            raise ConnectionResetError
        self.writer.write(data)
        await self.writer.drain()

    async def until(self, end: bytes) -> bytes:
        return await asyncio.wait_for(self.reader.readuntil(end), PATIENCE_S)

    async def rest(self) -> bytes:
        """Return all that comes until the server closes; nothing more after a reset."""
        found = b""
        try:
            while part := await asyncio.wait_for(self.reader.read(65_536), PATIENCE_S):
                found += part
        except ConnectionError:
            pass
        return found

    def half_close(self) -> None:
        self.writer.write_eof()

    def reset(self) -> None:
        """Vanish without a goodbye."""
        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class ListeningPort:
    """A port that any server listens on, and how to reach it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._peers: list[Peer] = []

    async def connect(self, receive_buffer: int | None = None) -> Peer:
        raw = socket.socket()
        if receive_buffer is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, self.address)
        peer = Peer(*await asyncio.open_connection(sock=raw, limit=1 << 16))
        self._peers.append(peer)
        return peer

    async def leave(self) -> None:
        """Close every connection of this side."""
        for peer in self._peers:
            peer.writer.transport.abort()
        await asyncio.sleep(0.01)

    async def ask(self, request: bytes) -> bytes:
        """Send one request on a connection of its own; return the whole response."""
        peer = await self.connect()
        await peer.send(request)
        return await peer.rest()

    async def settle(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await asyncio.sleep(0.01)


class Listener(ListeningPort):
    """A server of ours, and how to reach it."""

    def __init__(self, server: HttpServer, address: tuple[str, int]) -> None:
        super().__init__(address)
        self.server = server


def allow_descriptors(count: int) -> None:
    """Let this process have so many open files, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@asynccontextmanager
async def listening(
    routes: Mapping[tuple[str, str], Route], options: ServerOptions | None = None
) -> AsyncIterator[Listener]:
    """Serve routes until the block ends; then nothing is left open."""
    listener = bind("127.0.0.1", 0)
    server = HttpServer(Router(routes, Hosts(is_exposed=False)), [listener], options)
    serving = asyncio.create_task(server.serve())
    reached = Listener(server, listener.getsockname())
    try:
        yield reached
    finally:
        server.stop()
        await reached.leave()
        await asyncio.wait_for(serving, PATIENCE_S)
        assert server.connections == 0
