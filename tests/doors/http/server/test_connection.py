"""Slow, greedy and crooked clients: none of them keeps a connection, or the service from the others."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from portbook.doors.http.request import InboundRequest
from portbook.doors.http.response import Reply
from portbook.doors.http.router import Route
from portbook.doors.http.server.answerer_and_flow_control import ClientOutput
from portbook.doors.http.server.connection_limits_deadlines_and_overload import ConnectionLimits, Turns
from portbook.doors.http.server.http_server_and_shutdown import ServerOptions
from support.bad_clients import BEHAVIOURS, HEAD, JSON, KERNEL_BYTES, LARGE, LIVEZ, PHASES, World
from support.counts import count
from support.http_listener import PATIENCE_S, SHORT, Listener, Peer, allow_descriptors, listening


def play(
    main: Callable[[Listener, World], Coroutine[Any, Any, None]], options: ServerOptions | None = None
) -> None:
    async def scene() -> None:
        world = World()
        async with listening(world.routes(), options or ServerOptions(deadlines=SHORT)) as listener:
            await main(listener, world)

    uvloop.run(scene())


@pytest.mark.soak("idle and slow clients")
def test_a_crowd_of_silent_and_slow_clients_is_closed_while_the_others_are_served() -> None:
    each = count("idle and slow clients")
    allow_descriptors(6 * each + 256)
    # All of them share this process and its loop, which takes its time with thousands.
    seconds = 0.3 + each / 400
    deadlines = replace(SHORT, first_byte_s=seconds, head_s=seconds, idle_s=seconds)

    async def main(listener: Listener, world: World) -> None:
        peers = [await listener.connect() for _ in range(2 * each)]

        async def push(peer: Peer) -> None:
            with contextlib.suppress(ConnectionError):
                while not peer.writer.is_closing():
                    await peer.send(b"G")
                    await asyncio.sleep(0.02)

        async with asyncio.timeout(PATIENCE_S * 3):
            pushing = [asyncio.create_task(push(peer)) for peer in peers[each:]]
            while listener.server.connections:
                assert b"alive" in await listener.ask(LIVEZ)
                await asyncio.sleep(0.01)
            # What is left to them is what they were told.
            told = [await peer.rest() for peer in peers]
        for task in pushing:
            task.cancel()
        await asyncio.gather(*pushing, return_exceptions=True)
        assert all(answer == b"" or b"HTTP/1.1" in answer for answer in told)

    play(main, ServerOptions(deadlines=deadlines))


@pytest.mark.covers("design.http-server.deadlines")
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("phase", PHASES)
def test_no_client_keeps_its_connection_and_the_others_are_served(phase: str, behaviour: str) -> None:
    async def main(listener: Listener, world: World) -> None:
        peer = await listener.connect(receive_buffer=4096)
        peer.writer.transport.pause_reading()  # it reads nothing
        await peer.send(PHASES[phase])
        await listener.settle(lambda: listener.server.connections == 1)
        behaving = asyncio.ensure_future(BEHAVIOURS[behaviour](peer))
        await asyncio.sleep(0.05)
        assert (await listener.ask(LIVEZ)).endswith(b"alive")
        world.release.set()
        await listener.settle(lambda: listener.server.connections == 0)
        behaving.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await behaving
        assert world.written <= KERNEL_BYTES

    play(main)


# -- bodies


@pytest.mark.covers("design.http-server.body-deadline")
def test_a_body_that_takes_too_long_is_refused_and_the_connection_closed() -> None:
    async def main(listener: Listener, world: World) -> None:
        answer = await listener.ask(b"POST /echo" + HEAD + JSON + b"content-length: 5\r\n\r\n{")
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer
        assert world.refused == ["FRAME_TOO_SLOW"]

    play(main)


def test_a_message_that_is_cut_off_is_refused_and_answered_to_nobody() -> None:
    async def main(listener: Listener, world: World) -> None:
        for sent, refused in ((b"{", ["CANCELLED"]), (b"", [])):
            world.refused.clear()
            peer = await listener.connect()
            await peer.send(b"POST /echo" + HEAD + JSON + b"content-length: 5\r\n\r\n" + sent)
            await listener.settle(lambda: listener.server.connections == 1)
            await asyncio.sleep(0.02)
            peer.half_close()
            assert await peer.rest() == b""
            assert world.refused == refused

    play(main)


def test_a_client_that_waits_for_a_word_gets_it_and_one_whose_message_is_refused_does_not() -> None:
    async def main(listener: Listener, world: World) -> None:
        head = HEAD + b"expect: 100-continue\r\ncontent-length: 2\r\n"
        peer = await listener.connect()
        await peer.send(b"POST /echo" + head + JSON + b"connection: close\r\n\r\n")
        assert await peer.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await peer.send(b"{}")
        assert (await peer.rest()).endswith(b"\r\n\r\n{}")
        refused = await listener.ask(b"POST /echo" + head + b"\r\n")
        assert refused.startswith(b"HTTP/1.1 415 ")
        whole = await listener.ask(b"POST /echo" + head + JSON + b"connection: close\r\n\r\n{}")
        assert whole.startswith(b"HTTP/1.1 200 ")

    play(main)


def test_after_an_answer_with_an_unread_body_nothing_is_read_as_a_request() -> None:
    async def main(listener: Listener, world: World) -> None:
        hidden = b"GET /livez" + HEAD + b"\r\n"
        for request in (
            b"POST /nothing" + HEAD + b"content-length: 500\r\n\r\n",
            b"GET /livez" + HEAD + b"content-length: 500\r\n\r\n",
            b"POST /echo" + HEAD + b"transfer-encoding: chunked\r\n\r\n1f4\r\n",
        ):
            answer = await listener.ask(request + hidden)
            assert answer.count(b"HTTP/1.1 ") == 1
            assert b"connection: close" in answer

    play(main)


def test_an_unwanted_body_that_has_come_whole_is_skipped() -> None:
    async def main(listener: Listener, world: World) -> None:
        request = b"GET /livez" + HEAD + b"content-length: 3\r\n\r\nabc"
        answer = await listener.ask(request + request + LIVEZ)
        assert answer.count(b"HTTP/1.1 200 OK") == 3

    play(main)


# -- answers


def test_requests_that_are_sent_ahead_are_answered_in_order() -> None:
    async def main(listener: Listener, world: World) -> None:
        world.release.set()
        requests = [
            b"POST /%s" % path + HEAD + JSON + b"content-length: 2\r\n\r\n%02d" % number
            for number, path in enumerate([b"echo", b"wait"] * 20)
        ]
        await listener.ask(b"".join(requests) + LIVEZ)
        assert world.bodies == [b"%02d" % number for number in range(40)]

    play(main)


def test_a_request_that_is_being_answered_is_cancelled_if_its_client_leaves() -> None:
    async def main(listener: Listener, world: World) -> None:
        peer = await listener.connect()
        await peer.send(PHASES["answer"])
        await listener.settle(lambda: listener.server.connections == 1)
        peer.reset()
        await listener.settle(lambda: world.cancelled == 1)
        assert world.bodies == []

    play(main)


def test_whoever_reads_gets_a_large_answer_and_a_long_stream_whole() -> None:
    async def main(listener: Listener, world: World) -> None:
        answer = await listener.ask(b"GET /large" + HEAD + b"connection: close\r\n\r\n")
        assert answer.endswith(LARGE)
        peer = await listener.connect()
        await peer.send(b"GET /stream" + HEAD + b"\r\n")
        assert b"transfer-encoding: chunked" in await peer.until(b"\r\n\r\n")
        for _ in range(500):
            assert await peer.until(b"\r\n") == b"2710\r\n"
            await peer.reader.readexactly(10_002)
        peer.writer.close()
        await listener.settle(lambda: world.cancelled == 1)

    play(main)


def test_a_client_that_reads_slowly_gets_a_large_answer_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[bool] = []

    def has_moved(_: ClientOutput) -> bool:
        moved.append(True)
        return True

    monkeypatch.setattr(ClientOutput, "has_moved", has_moved)

    async def main(listener: Listener, world: World) -> None:
        peer = await listener.connect(receive_buffer=4096)
        peer.writer.transport.pause_reading()
        await peer.send(b"GET /large" + HEAD + b"connection: close\r\n\r\n")
        await listener.settle(lambda: len(moved) > 2)  # three deadlines have passed
        peer.writer.transport.resume_reading()
        assert (await peer.rest()).endswith(LARGE)

    play(main)


def test_an_old_client_gets_a_stream_without_chunks_and_an_end() -> None:
    async def main(listener: Listener, world: World) -> None:
        peer = await listener.connect()
        await peer.send(b"GET /stream HTTP/1.0\r\nhost: localhost\r\nconnection: keep-alive\r\n\r\n")
        head = await peer.until(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        assert b"connection: close" in head
        assert await peer.reader.readexactly(30_000) == b"y" * 30_000
        peer.writer.close()
        await listener.settle(lambda: world.cancelled == 1)

    play(main)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"GET /livez HTTP/1.0\r\nhost: localhost\r\n\r\n", b"connection: close"),
        (
            b"GET /livez HTTP/1.0\r\nhost: localhost\r\nconnection: keep-alive\r\n\r\n",
            b"connection: keep-alive",
        ),
        (b"HEAD /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", b"content-length: 5"),
    ],
)
def test_old_clients_and_head_are_answered_in_their_way(head: bytes, said: bytes) -> None:
    async def main(listener: Listener, world: World) -> None:
        answer = await listener.ask(head)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert said in answer
        assert answer.endswith(b"alive") != head.startswith(b"HEAD")

    play(main)


def test_a_bug_of_a_route_is_answered_without_its_words_and_ends_the_connection() -> None:
    async def main(listener: Listener, world: World) -> None:
        answer = await listener.ask(b"GET /bug" + HEAD + b"\r\n" + LIVEZ)
        assert answer.startswith(b"HTTP/1.1 500 ")
        assert b"secret" not in answer
        assert answer.count(b"HTTP/1.1 ") == 1

    play(main)


# -- too many


@pytest.mark.covers("design.http-server.reserve")
def test_while_all_connections_are_taken_health_checks_are_answered_and_the_rest_is_told_to_wait() -> None:
    limits = ConnectionLimits(most=20, reserve=3)

    async def main(listener: Listener, world: World) -> None:
        busy = [await listener.connect() for _ in range(20)]
        for peer in busy:
            await peer.send(PHASES["answer"])
        await listener.settle(lambda: listener.server.connections == 20)
        for _ in range(30):
            await listener.connect()  # and never a byte
        assert (await listener.ask(LIVEZ)).endswith(b"alive")
        refused = await listener.ask(b"GET /large" + HEAD + b"\r\n")
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in refused
        world.release.set()
        for peer in busy:
            assert (await peer.until(b"{}")).startswith(b"HTTP/1.1 200 ")

    play(main, ServerOptions(limits, SHORT))


def test_idle_connections_make_room_for_new_ones() -> None:
    limits = ConnectionLimits(most=5, reserve=1)

    async def main(listener: Listener, world: World) -> None:
        idle = [await listener.connect() for _ in range(5)]
        for peer in idle:
            await peer.send(PHASES["idle"])
            await peer.until(b"alive")
        answer = await listener.ask(b"GET /large" + HEAD + b"connection: close\r\n\r\n")
        assert answer.endswith(LARGE)
        assert await idle[0].rest() == b""

    play(main, ServerOptions(limits))


@pytest.mark.parametrize("phase", ["first byte", "drain after 404", "drain after 413", "drain after 400"])
def test_clients_that_go_on_after_their_answer_or_never_begin_keep_nobody_out(phase: str) -> None:
    limits = ConnectionLimits(most=5, reserve=1)

    async def main(listener: Listener, world: World) -> None:
        for _ in range(5):
            await (await listener.connect()).send(PHASES[phase])
        await listener.settle(lambda: listener.server.connections == 5)
        await asyncio.sleep(0.05)
        for _ in range(5):
            answer = await listener.ask(b"GET /large" + HEAD + b"connection: close\r\n\r\n")
            assert answer.endswith(LARGE)

    play(main, ServerOptions(limits))


@pytest.mark.covers("design.http-server.turns")
def test_a_health_check_is_answered_while_more_has_come_than_there_is_time_for() -> None:
    clients, each = 50, 8
    request = b"GET /busy" + HEAD + b"\r\n"
    served = 0

    async def busy(_request: InboundRequest) -> Reply:
        nonlocal served
        served += 1
        time.sleep(0.002)  # noqa: ASYNC251 - this is the work of a busy server
        return Reply(200, b"", b"done")

    async def scene() -> None:
        world = World()
        async with listening(world.routes() | {("GET", "/busy"): Route(busy)}) as listener:
            peers = [await listener.connect() for _ in range(clients)]
            checker = await listener.connect()
            for peer in peers:
                peer.writer.write(request * each)
            await checker.send(LIVEZ)
            assert (await checker.rest()).endswith(b"alive")
            # A turn has time for five of them, and the check takes a few turns.
            assert served < clients * each / 2
            for peer in peers:
                for _ in range(each):
                    await peer.until(b"done")
            assert served == clients * each

    uvloop.run(scene())


def test_a_new_request_that_would_wait_for_too_long_is_told_to_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turns, "is_late", True)

    async def main(listener: Listener, world: World) -> None:
        first, second = await listener.connect(), await listener.connect()
        await listener.settle(lambda: listener.server.connections == 2)
        monkeypatch.setattr(Turns, "has_time", lambda _: False)
        await first.send(b"GET /large" + HEAD + b"\r\n")
        refused = await first.rest()
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in refused
        await second.send(LIVEZ)
        assert (await second.rest()).endswith(b"alive")

    play(main)


@pytest.mark.covers("design.http-server.unfinished")
def test_unfinished_messages_make_room_for_each_other_and_their_clients_are_told() -> None:
    limits = ConnectionLimits(unfinished_bytes=100_000)
    part = b"POST /echo" + HEAD + JSON + b"content-length: 900000\r\n\r\n" + b"1" * 40_000

    async def main(listener: Listener, world: World) -> None:
        first = await listener.connect()
        await first.send(part)
        await listener.settle(lambda: listener.server.connections == 1)
        await asyncio.sleep(0.02)
        further = [await listener.connect() for _ in range(2)]
        for peer in further:
            await peer.send(part)
        assert (await first.rest()).startswith(b"HTTP/1.1 503 ")
        assert world.refused == ["TOO_MANY_IN_FLIGHT"]
        await further[1].send(b"1" * 860_000)
        assert (await further[1].until(b"1" * 900_000)).startswith(b"HTTP/1.1 200 ")

    play(main, ServerOptions(limits))


@pytest.mark.covers("design.http-server.workload")
def test_a_message_for_which_there_is_no_memory_beside_those_in_progress_is_refused() -> None:
    limits = ConnectionLimits(workload_bytes=150_000)
    message = b"POST /wait" + HEAD + JSON + b"content-length: 100000\r\n\r\n" + b"1" * 100_000

    async def main(listener: Listener, world: World) -> None:
        busy, refused = await listener.connect(), await listener.connect()
        await busy.send(message)
        await asyncio.sleep(0.05)
        await refused.send(message)
        await listener.settle(lambda: bool(world.refused))
        assert world.refused == ["TOO_MANY_IN_FLIGHT"]
        world.release.set()
        assert (await busy.until(b"1" * 100_000)).startswith(b"HTTP/1.1 200 ")
        assert (await refused.until(b"refused")).startswith(b"HTTP/1.1 503 ")
        await refused.send(message)
        assert (await refused.until(b"1" * 100_000)).startswith(b"HTTP/1.1 200 ")

    play(main, ServerOptions(limits))


@pytest.mark.covers("design.http-server.trusted-proxies")
def test_a_client_behind_a_proxy_has_a_limit_of_its_own() -> None:
    limits = ConnectionLimits(per_address=2)

    def asking(client: bytes, path: bytes = b"wait") -> bytes:
        forwarded = b"x-forwarded-for: 198.51.100.1, %s\r\n" % client
        return b"POST /" + path + HEAD + JSON + forwarded + b"content-length: 2\r\n\r\n{}"

    async def main(listener: Listener, world: World) -> None:
        greedy = [await listener.connect() for _ in range(2)]
        for peer in greedy:
            await peer.send(asking(b"203.0.113.9"))
        await listener.settle(lambda: listener.server.connections == 2)
        await asyncio.sleep(0.02)
        assert (await listener.ask(asking(b"203.0.113.9"))).startswith(b"HTTP/1.1 503 ")
        assert (await listener.ask(asking(b"nobody"))).startswith(b"HTTP/1.1 400 ")
        further = await listener.connect()
        await further.send(asking(b"203.0.113.10", b"echo"))
        assert (await further.until(b"{}")).startswith(b"HTTP/1.1 200 ")
        world.release.set()
        for peer in greedy:
            await peer.until(b"{}")
            await peer.send(asking(b"203.0.113.9"))
            assert (await peer.until(b"{}")).startswith(b"HTTP/1.1 200 ")

    play(main, ServerOptions(limits, trusted_proxies=("127.0.0.1",)))


def test_a_stop_finishes_what_is_being_answered_and_closes_the_rest() -> None:
    async def main(listener: Listener, world: World) -> None:
        idle, busy = await listener.connect(), await listener.connect()
        await idle.send(PHASES["idle"])
        await idle.until(b"alive")
        await busy.send(PHASES["answer"])
        await listener.settle(lambda: listener.server.connections == 2)
        await asyncio.sleep(0.02)
        listener.server.stop()
        assert await idle.rest() == b""
        world.release.set()
        answer = await busy.rest()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in answer

    play(main)
