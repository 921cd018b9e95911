"""Calls that are held open for a later round: found once, and ended when nobody comes."""

from __future__ import annotations

import asyncio

from portbook.executors.mcp_server_questions import HeldCall, HeldCalls
from support.fake_upstream import FakeLink, connected


def test_a_held_call_is_found_once() -> None:
    async def main() -> None:
        connection = await connected(FakeLink())
        call = connection.begin("tools/call", lambda _: {"name": "a"}, None)
        held = HeldCalls()
        handle = held.put(HeldCall(connection, call, {}, {}))
        found = held.take(handle)
        assert found is not None
        assert found.call is call
        assert held.take(handle) is None
        assert held.take("made up") is None

    asyncio.run(main())


def test_what_nobody_continues_is_cancelled_at_the_server() -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        call = connection.begin("tools/call", lambda _: {"name": "a"}, None)
        held = HeldCalls()
        held.put(HeldCall(connection, call, {}, {}))
        held.close()
        assert link.sent[-1]["method"] == "notifications/cancelled"

    asyncio.run(main())


def test_a_call_whose_connection_is_lost_is_held_no_longer() -> None:
    async def main() -> None:
        connection, held = await connected(FakeLink()), HeldCalls()
        for _ in range(2):
            handles: list[str] = []
            for _ in range(256):  # as many as are held at once
                call = connection.begin("tools/call", lambda _: {"name": "a"}, None)
                handles.append(held.put(HeldCall(connection, call, {}, {})))
            connection.lost("its process ended")
            await asyncio.sleep(0)
            assert held.take(handles[0]) is None
            connection = await connected(FakeLink())

    asyncio.run(main())


def test_a_result_waits_for_the_round_that_takes_it() -> None:
    async def main() -> None:
        connection, held = await connected(FakeLink()), HeldCalls()
        call = connection.begin("tools/call", lambda _: {"name": "a"}, None)
        handle = held.put(HeldCall(connection, call, {}, {}))
        call.settle({"content": []})
        await asyncio.sleep(0)
        assert held.take(handle) is not None

    asyncio.run(main())
