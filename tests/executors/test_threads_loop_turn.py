"""What is done once for all who wait in one turn of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from portbook.executors.threads import LoopTurn


def test_all_of_one_turn_share_one_end_and_those_of_the_next_have_another() -> None:
    async def main() -> None:
        turn, done = LoopTurn(), []

        async def one(number: int) -> None:
            await turn.end(lambda: done.append(number))
            assert done  # before anybody goes on

        await asyncio.gather(*(one(number) for number in range(5)))
        assert done == [0]
        await asyncio.gather(one(7), one(8))
        assert done == [0, 7]

    asyncio.run(main())


def test_one_who_is_cancelled_takes_nothing_from_the_others() -> None:
    async def main() -> None:
        turn, done = LoopTurn(), []
        tasks = [asyncio.ensure_future(turn.end(lambda: done.append(1))) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await tasks[1]
        assert done == [1]
        assert tasks[0].cancelled()

    asyncio.run(main())


def test_a_failure_holds_nobody_up_and_another_loop_begins_anew() -> None:
    turn = LoopTurn()

    async def fail() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        await turn.end(lambda: 1 // 0)

    async def leave() -> None:
        waiting = asyncio.ensure_future(turn.end(lambda: None))
        await asyncio.sleep(0)
        waiting.cancel()
        asyncio.get_running_loop().stop()

    asyncio.run(fail())
    with pytest.raises(RuntimeError, match="stopped before"):
        asyncio.run(leave())
    asyncio.run(asyncio.wait_for(turn.end(lambda: None), 20))
