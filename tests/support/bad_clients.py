"""Slow, greedy and crooked clients: every phase of a connection, and every way to be a bad client in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from portbook.doors.http.request import InboundRequest, RequestHead
from portbook.doors.http.response import Reply, Write
from portbook.doors.http.router import Route
from portbook.errors import Refused
from support.http_listener import PATIENCE_S, Peer

# What the buffers of the system may take of a stream that nobody reads.
KERNEL_BYTES = 8_000_000

LARGE = b"x" * 8_000_000
HEAD = b" HTTP/1.1\r\nhost: localhost\r\n"
JSON = b"content-type: application/json\r\n"
LIVEZ = b"GET /livez" + HEAD + b"connection: close\r\n\r\n"


class World:
    """Routes that note what happened to their requests."""

    def __init__(self) -> None:
        self.bodies: list[object] = []
        self.refused: list[str] = []
        self.cancelled = 0
        self.written = 0
        self.release = asyncio.Event()

    def routes(self) -> dict[tuple[str, str], Route]:
        return {
            ("GET", "/livez"): Route(self.live),
            ("HEAD", "/livez"): Route(self.live),
            ("POST", "/echo"): Route(self.echo, self.refuse, takes_message=True),
            ("POST", "/wait"): Route(self.wait, self.refuse, takes_message=True),
            ("GET", "/large"): Route(self.large),
            ("GET", "/stream"): Route(self.stream),
            ("GET", "/bug"): Route(self.bug),
        }

    async def live(self, _request: InboundRequest) -> Reply:
        return Reply(200, b"", b"alive")

    async def echo(self, request: InboundRequest) -> Reply:
        self.bodies.append(request.body)
        return Reply(200, b"", request.body if isinstance(request.body, bytes) else b"oversize")

    async def refuse(self, _head: RequestHead, refused: Refused) -> Reply:
        self.refused.append(refused.reason.value)
        return Reply(refused.row.http, b"", b"refused")

    async def wait(self, request: InboundRequest) -> Reply:
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await self.echo(request)

    async def large(self, _request: InboundRequest) -> Reply:
        return Reply(200, b"", LARGE)

    async def stream(self, _request: InboundRequest) -> Reply:
        async def write_on(write: Write) -> None:
            try:
                while True:
                    await write(b"y" * 10_000)
                    self.written += 10_000
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise

        return Reply(200, b"", stream=write_on)

    async def bug(self, _request: InboundRequest) -> Reply:
        raise ValueError("secret")


PHASES: dict[str, bytes] = {
    "first byte": b"",
    "head": b"GET /livez HTTP/1.1\r\nhost: lo",
    "body": b"POST /echo" + HEAD + JSON + b"content-length: 900000\r\n\r\n123",
    "chunks": b"POST /echo" + HEAD + JSON + b"transfer-encoding: chunked\r\n\r\nffff\r\n123",
    "answer": b"POST /wait" + HEAD + JSON + b"content-length: 2\r\n\r\n{}",
    "idle": b"GET /livez" + HEAD + b"\r\n",
    "drain after 404": b"POST /nothing" + HEAD + b"content-length: 900000000\r\n\r\n1",
    "drain after 415": b"POST /echo" + HEAD + b"content-length: 900000000\r\n\r\n1",
    "drain after 413": b"POST /echo" + HEAD + JSON + b"content-length: 900000000\r\n\r\n1",
    "drain after a GET with a body": b"GET /livez" + HEAD + b"content-length: 900000000\r\n\r\n1",
    "drain after 400": b"GET /livez HTTP/1.1\nhost: localhost\n\n",
    "writing": b"GET /large" + HEAD + b"\r\n",
    "streaming": b"GET /stream" + HEAD + b"\r\n",
}


async def silent(peer: Peer) -> None:
    await asyncio.sleep(PATIENCE_S)


async def slow(peer: Peer) -> None:
    while True:
        await peer.send(b"1")
        await asyncio.sleep(0.02)


async def flooding(peer: Peer) -> None:
    while True:
        await peer.send(b"1" * 65_536)


async def half_closed(peer: Peer) -> None:
    peer.half_close()
    await asyncio.sleep(PATIENCE_S)


async def reset(peer: Peer) -> None:
    peer.reset()


BEHAVIOURS: dict[str, Callable[[Peer], Awaitable[None]]] = {
    "silent": silent,
    "slow": slow,
    "flooding": flooding,
    "half-closed": half_closed,
    "reset": reset,
}
