"""Requests beyond the connections of a destination wait in turn, and lose no connection when they leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from portbook.net import http_client
from portbook.net.destinations import Destinations, parse_destination
from portbook.net.http_client import HttpClient, HttpRequest, Sendings
from portbook.net.http_connection import Broken
from support.scripted_api import HANG, Conversation, Upstream, answer


@pytest.fixture(autouse=True)
def _two_connections(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(http_client, "_MAX_CONNECTIONS", 2)


def run(main: Callable[[HttpClient], Coroutine[Any, Any, None]]) -> None:
    async def scene() -> None:
        client = HttpClient()
        try:
            await asyncio.wait_for(main(client), 60)
        finally:
            await client.close()

    asyncio.run(scene())


def request(upstream: Upstream, target: str = "/", **changed: Any) -> HttpRequest:
    return HttpRequest(parse_destination(upstream.url), "GET", target, b"", **changed)


def listed(upstream: Upstream) -> Destinations:
    return Destinations.of_base_urls([upstream.url])


def test_all_are_answered_in_turn_over_as_many_connections_as_may_be_open() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer()) as upstream:
            allowed = listed(upstream)
            sending = [client.send(request(upstream, f"/{number}"), allowed) for number in range(20)]
            assert {response.body for response in await asyncio.gather(*sending)} == {b"{}"}
            assert upstream.connections == 2
            assert {asked.target for asked in upstream.asked} == {f"/{number}" for number in range(20)}

    run(main)


def test_who_leaves_the_queue_is_not_sent_and_holds_nobody_up() -> None:
    release = asyncio.Event()

    async def patient(conversation: Conversation) -> None:
        await release.wait()
        conversation.writer.write(answer())

    async def main(client: HttpClient) -> None:
        async with Upstream(patient) as upstream:
            allowed = listed(upstream)
            tasks = [
                asyncio.ensure_future(client.send(request(upstream, f"/{number}"), allowed))
                for number in range(5)
            ]
            while len(upstream.asked) < 2:
                await asyncio.sleep(0)
            tasks[2].cancel()
            release.set()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(each, asyncio.CancelledError) for each in ended] == [
                False, False, True, False, False,
            ]  # fmt: skip
            assert "/2" not in {asked.target for asked in upstream.asked}

    run(main)


def test_who_waits_too_long_for_a_connection_was_not_sent() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(HANG) as upstream:
            allowed, sendings, until = listed(upstream), Sendings(0), asyncio.get_running_loop().time()
            hanging = [asyncio.ensure_future(client.send(request(upstream), allowed)) for _ in range(2)]
            while len(upstream.asked) < 2:
                await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                await client.send(request(upstream), allowed, sendings, until=until)
            assert not sendings.has_begun
            hanging[0].cancel()
            hanging[1].cancel()
            await asyncio.gather(*hanging, return_exceptions=True)

    run(main)


def test_where_a_connection_was_lost_the_next_request_opens_one() -> None:
    async def close(conversation: Conversation) -> None:
        conversation.writer.close()

    async def main(client: HttpClient) -> None:
        async with Upstream(close, close, answer()) as upstream:
            allowed = listed(upstream)
            sending = [client.send(request(upstream, f"/{number}"), allowed) for number in range(6)]
            ended = await asyncio.gather(*sending, return_exceptions=True)
            assert [isinstance(each, Broken) for each in ended] == [True, True, False, False, False, False]

    run(main)


def test_who_is_cancelled_when_it_may_open_a_connection_leaves_that_to_the_next() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(HANG) as upstream:
            allowed = listed(upstream)
            hanging = [asyncio.ensure_future(client.send(request(upstream), allowed)) for _ in range(2)]
            while len(upstream.asked) < 2:
                await asyncio.sleep(0)
            queued = [asyncio.ensure_future(client.send(request(upstream), allowed)) for _ in range(2)]
            await asyncio.sleep(0)
            for task in (hanging[0], hanging[1], queued[0]):  # the first is told that it may, and is gone
                task.cancel()
                await asyncio.sleep(0)
            while len(upstream.asked) < 3:  # the last one got through
                await asyncio.sleep(0)
            queued[1].cancel()
            await asyncio.gather(*hanging, *queued, return_exceptions=True)
            # Nothing is counted that is not there: two more can be open at once.
            upstream.asked.clear()
            again = [asyncio.ensure_future(client.send(request(upstream), allowed)) for _ in range(2)]
            while len(upstream.asked) < 2:
                await asyncio.sleep(0)
            for task in again:
                task.cancel()
            await asyncio.gather(*again, return_exceptions=True)

    run(main)


def test_a_connection_checked_under_a_different_allowlist_is_not_handed_on() -> None:
    release = asyncio.Event()

    async def patient(conversation: Conversation) -> None:
        await release.wait()
        conversation.writer.write(answer())

    async def main(client: HttpClient) -> None:
        async with Upstream(patient) as upstream:
            before, after = listed(upstream), listed(upstream)
            first = [asyncio.ensure_future(client.send(request(upstream), before)) for _ in range(2)]
            while len(upstream.asked) < 2:
                await asyncio.sleep(0)
            queued = asyncio.ensure_future(client.send(request(upstream), after))
            await asyncio.sleep(0)
            release.set()
            await asyncio.gather(*first, queued)
            assert upstream.connections == 3

    run(main)


async def in_order(upstream: Upstream, *targets: str) -> None:
    """Wait until these have arrived."""
    while [asked.target for asked in upstream.asked] != [*targets]:
        await asyncio.sleep(0)


async def ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_request_of_a_call_that_was_closed_in_the_queue_is_not_sent() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(HANG) as upstream:
            allowed, until = listed(upstream), asyncio.get_running_loop().time() + 60
            hanging = [asyncio.ensure_future(client.send(request(upstream, "/a"), allowed)) for _ in range(2)]
            await in_order(upstream, "/a", "/a")
            queued = client.send(request(upstream, "/ghost"), allowed, until=until)
            queued.send(None)
            queued.close()  # as a door does with a call that was cancelled before its task ran
            await ended(*hanging)
            again = [asyncio.ensure_future(client.send(request(upstream, "/b"), allowed)) for _ in range(2)]
            await in_order(upstream, "/a", "/a", "/b", "/b")
            await ended(*again)

    run(main)


def test_a_call_that_was_closed_while_it_waited_for_its_answer_gives_its_connection_back() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer(), answer(), HANG) as upstream:
            allowed, until = listed(upstream), asyncio.get_running_loop().time() + 60
            await asyncio.gather(*(client.send(request(upstream, "/a"), allowed) for _ in range(2)))
            for _ in range(2):  # on the two connections that are idle now
                sending = client.send(request(upstream, "/b"), allowed, until=until)
                sending.send(None)
                sending.close()
            again = [asyncio.ensure_future(client.send(request(upstream, "/c"), allowed)) for _ in range(2)]
            while [asked.target for asked in upstream.asked].count("/c") < 2:
                await asyncio.sleep(0)
            await ended(*again)

    run(main)
