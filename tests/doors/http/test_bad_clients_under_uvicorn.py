"""Slow, greedy and crooked clients under a server of someone else: nothing of ours waits for them forever.

The server around the application frames requests, and decides how long a connection may be silent. From the
head on the limits are ours.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import uvloop

from portbook.doors.http import mounted_asgi_app as asgi
from support.bad_clients import BEHAVIOURS, HEAD, JSON, KERNEL_BYTES, LIVEZ, PHASES, World
from support.under_uvicorn import PARSERS, under_uvicorn


@pytest.mark.covers("design.http-server.asgi-deadlines")
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("http", PARSERS)
def test_no_client_keeps_the_application_busy_and_the_others_are_served(
    http: str, phase: str, behaviour: str
) -> None:
    async def main() -> None:
        world = World()
        async with under_uvicorn(world.routes(), http) as mounted:
            peer = await mounted.connect(receive_buffer=4096)
            peer.writer.transport.pause_reading()  # it reads nothing
            await peer.send(PHASES[phase])
            behaving = asyncio.ensure_future(BEHAVIOURS[behaviour](peer))
            await asyncio.sleep(0.05)
            assert (await mounted.ask(LIVEZ)).endswith(b"alive")
            world.release.set()
            await mounted.settle(lambda: mounted.busy == 0)
            behaving.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await behaving
            assert (await mounted.ask(LIVEZ)).endswith(b"alive")
            assert world.written <= KERNEL_BYTES

    uvloop.run(main())


EARLY = {
    408: b"POST /echo" + HEAD + JSON + b"content-length: 5\r\n\r\n{",
    404: b"POST /nothing" + HEAD + b"content-length: 5\r\n\r\n{",
    405: b"POST /livez" + HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n{",
    415: b"POST /echo" + HEAD + b"content-length: 5\r\n\r\n{",
    200: b"GET /livez" + HEAD + b"content-length: 5\r\n\r\n{",
}


@pytest.mark.parametrize("http", PARSERS)
@pytest.mark.parametrize("status", EARLY)
def test_after_an_answer_with_an_unread_body_the_connection_closes(http: str, status: int) -> None:
    async def main() -> None:
        world = World()
        async with under_uvicorn(world.routes(), http) as mounted:
            answer = await mounted.ask(EARLY[status])
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            assert b"connection: close" in answer
            assert world.bodies == []

    uvloop.run(main())


def test_a_connection_goes_on_after_a_message_that_was_read_whole() -> None:
    async def main() -> None:
        async with under_uvicorn(World().routes(), "h11") as mounted:
            request = b"POST /echo" + HEAD + JSON + b"content-length: 2\r\n\r\n{}"
            answer = await mounted.ask(request + LIVEZ)
            assert answer.count(b"HTTP/1.1 200 ") == 2

    uvloop.run(main())


@pytest.mark.parametrize("bound", ["UNFINISHED_BYTES", "WORKLOAD_BYTES"])
def test_a_message_for_which_there_is_no_memory_is_refused(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, bound, 100_000)
    message = b"POST /wait" + HEAD + JSON + b"content-length: 90000\r\n\r\n" + b"1" * 90_000
    begun = message[:-5_000] if bound == "UNFINISHED_BYTES" else message

    async def main() -> None:
        world = World()
        async with under_uvicorn(world.routes(), "h11") as mounted:
            first, second = await mounted.connect(), await mounted.connect()
            await first.send(begun)
            await asyncio.sleep(0.1)
            await second.send(begun)
            await mounted.settle(lambda: bool(world.refused))
            assert world.refused == ["TOO_MANY_IN_FLIGHT"]
            world.release.set()
            await first.send(message[len(begun) :])
            assert (await first.until(b"1" * 90_000)).startswith(b"HTTP/1.1 200 ")

    uvloop.run(main())
