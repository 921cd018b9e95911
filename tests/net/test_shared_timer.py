"""One timer ends all that is late, and nothing that is in time."""

from __future__ import annotations

import asyncio

import pytest

from portbook.net.taskless_waits import SharedTimer


def made() -> asyncio.Future[str]:
    return asyncio.get_running_loop().create_future()


def armed() -> list[asyncio.TimerHandle]:
    timers: list[asyncio.TimerHandle] = vars(asyncio.get_running_loop())["_scheduled"]
    return [timer for timer in timers if not timer.cancelled()]


def test_what_is_late_fails_and_the_rest_goes_on_waiting() -> None:
    async def main() -> None:
        loop, timer = asyncio.get_running_loop(), SharedTimer()
        late, early, done = made(), made(), made()
        timer.add(early, loop.time() + 3600)
        timer.add(late, loop.time() + 0.01)
        timer.add(done, loop.time() + 0.01)
        done.set_result("in time")
        with pytest.raises(TimeoutError):
            await late
        assert not early.done()
        assert done.result() == "in time"
        assert len(armed()) == 1  # for the one that is left

    asyncio.run(main())


def test_many_have_one_timer_and_none_is_left_after_the_last() -> None:
    async def main() -> None:
        loop, timer = asyncio.get_running_loop(), SharedTimer()
        waiting = [made() for _ in range(100)]
        for number, future in enumerate(waiting):
            timer.add(future, loop.time() + 3600 - number)  # each before the one before it
        assert len(armed()) == 1
        for future in waiting:
            timer.remove(future)
        last = made()
        timer.add(last, loop.time())
        with pytest.raises(TimeoutError):
            await last
        assert armed() == []

    asyncio.run(main())


def test_deadlines_that_differ_a_little_all_hold() -> None:
    async def main() -> None:
        loop, timer = asyncio.get_running_loop(), SharedTimer()
        waiting = [made() for _ in range(50)]
        for number, future in enumerate(waiting):
            timer.add(future, loop.time() + number / 10_000)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in ended] == [TimeoutError] * 50

    asyncio.run(main())


def test_a_different_loop_begins_anew() -> None:
    timer = SharedTimer()

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        timer.add(made(), loop.time() - 3600)

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        late = made()
        timer.add(late, loop.time() + 0.01)
        with pytest.raises(TimeoutError):
            await late

    asyncio.run(leave())
    asyncio.run(wait())


def test_after_closing_no_timer_is_left() -> None:
    async def main() -> None:
        loop, timer = asyncio.get_running_loop(), SharedTimer()
        timer.add(made(), loop.time() + 3600)
        timer.close()
        assert armed() == []

    asyncio.run(main())


def test_what_still_waits_ends_with_the_timer() -> None:
    async def main() -> None:
        timer, waiting = SharedTimer(), made()
        timer.add(waiting, asyncio.get_running_loop().time() + 3600)
        timer.close()
        with pytest.raises(TimeoutError):
            await waiting

    asyncio.run(main())
