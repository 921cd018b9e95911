"""A connection whose head never ends is closed; one that is used is not."""

from __future__ import annotations

import asyncio

import pytest

from portbook.doors.http.request import InboundRequest
from portbook.doors.http.response import Reply
from portbook.doors.http.router import Route, Router
from portbook.doors.http.server.connection_limits_deadlines_and_overload import Deadlines
from portbook.doors.http.server.http_server_and_shutdown import HttpServer, ServerOptions
from portbook.doors.http.server.listeners_of_workers import bind
from portbook.net.allowed_hosts_and_origins import Hosts


def test_a_server_that_is_replaced_answers_what_a_client_is_about_to_send() -> None:
    request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"

    async def serve(request: InboundRequest) -> Reply:
        return Reply(200, b"", b"here")

    async def main() -> None:
        listener = bind("127.0.0.1", 0)
        server = HttpServer(Router({("GET", "/"): Route(serve)}, Hosts(is_exposed=False)), [listener])
        serving = asyncio.create_task(server.serve())
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(request)
        first = await asyncio.wait_for(reader.readuntil(b"here"), 20)
        assert b"connection: close" not in first.lower()
        server.retire()
        writer.write(request)
        second = await asyncio.wait_for(reader.read(), 20)
        assert second.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in second.lower()
        writer.close()
        await serving

    asyncio.run(main())


class Calls:
    """Calls of clients that are away, and of one that was asked something."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.ended = asyncio.Event()

    def await_answers(self) -> None:
        self.seen.append("answers may come")

    def fail_questions(self) -> None:
        self.seen.append("questions fail")
        self.ended.set()

    def give_up_waiting(self) -> None:
        self.seen.append("waiting given up")

    async def calls_ended(self, seconds: float) -> None:
        await self.ended.wait()
        self.seen.append("calls ended")


@pytest.mark.parametrize(
    ("is_replaced", "has_peers", "before"),
    [
        pytest.param(False, False, [], id="alone"),
        pytest.param(True, False, ["answers may come"], id="replaced"),
        pytest.param(False, True, ["answers may come"], id="one of several nodes"),
    ],
)
def test_calls_whose_client_is_away_are_waited_for_and_what_was_asked_fails_last(
    is_replaced: bool, has_peers: bool, before: list[str]
) -> None:
    async def main() -> None:
        calls = Calls()
        # So short that only the time for last words is left: what was asked fails at once.
        options = ServerOptions(grace_s=1.0, has_peers=has_peers)
        router = Router({}, Hosts(is_exposed=False))
        server = HttpServer(
            router, [bind("127.0.0.1", 0)], options, lambda: calls.seen.append("streams end"), calls
        )
        serving = asyncio.create_task(server.serve())
        await asyncio.sleep(0)
        (server.retire if is_replaced else server.stop)()
        await asyncio.wait_for(serving, 60)
        assert calls.seen == [*before, "streams end", "waiting given up", "questions fail", "calls ended"]

    asyncio.run(main())


def test_what_was_asked_fails_at_once_where_a_replaced_server_is_stopped() -> None:
    async def main() -> None:
        calls, is_stopping = Calls(), asyncio.Event()
        options = ServerOptions(grace_s=600.0)
        server = HttpServer(
            Router({}, Hosts(is_exposed=False)), [bind("127.0.0.1", 0)], options, is_stopping.set, calls
        )
        serving = asyncio.create_task(server.serve())
        server.retire()
        await asyncio.wait_for(is_stopping.wait(), 60)
        server.stop()
        await asyncio.wait_for(serving, 60)
        assert calls.seen == ["answers may come", "waiting given up", "questions fail", "calls ended"]

    asyncio.run(main())


@pytest.mark.covers("design.mcp-http.head-deadline")
@pytest.mark.parametrize(
    "sent", [b"", b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: "], ids=["nothing", "half a head"]
)
def test_whoever_sends_no_whole_head_in_time_is_cut_off(sent: bytes) -> None:
    deadlines = Deadlines(first_byte_s=0.1, head_s=0.1, sweep_s=0.02)

    async def serve(request: InboundRequest) -> Reply:
        await asyncio.sleep(0.3)  # longer than a head may take
        return Reply(200, b"", b"here")

    async def main() -> None:
        listener = bind("127.0.0.1", 0)
        router = Router({("GET", "/"): Route(serve)}, Hosts(is_exposed=False))
        server = HttpServer(router, [listener], ServerOptions(deadlines=deadlines))
        serving = asyncio.create_task(server.serve())
        address = listener.getsockname()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 200")
        writer.close()
        server.stop()
        await serving

    asyncio.run(main())
