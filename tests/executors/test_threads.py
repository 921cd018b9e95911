"""Worker threads: results, exceptions, deadlines that hold, and threads that do not return."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from portbook.errors import Failed, Reason, Refused
from portbook.exception_place import ToolExit
from portbook.executors import threads as workers_module
from portbook.executors.threads import Threads

LONG = 30.0  # never waited for: where a test would, it has failed
SHORT = 0.02


class Hanging:
    """A function that says when it started, and returns when it is let go."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    def __call__(self, arguments: Any) -> Any:
        self.thread = threading.current_thread()
        self.started.set()
        assert self.release.wait(LONG)
        self.ended.set()
        return arguments

    async def has_started(self) -> None:
        assert await asyncio.to_thread(self.started.wait, LONG)


@pytest.fixture
def hang() -> Iterator[Callable[[], Hanging]]:
    """Make functions that hang; let all of them go in the end, and wait for their threads."""
    made: list[Hanging] = []

    def make() -> Hanging:
        made.append(Hanging())
        return made[-1]

    yield make
    for hanging in made:
        hanging.release.set()
    for hanging in made:
        if hanging.started.is_set():
            assert hanging.ended.wait(LONG)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG / 3):
        while not condition():
            await asyncio.sleep(0)


def same(arguments: Any) -> Any:
    return arguments


def current_thread(_: Any) -> threading.Thread:
    return threading.current_thread()


# --- results and exceptions


def test_a_function_runs_in_a_daemon_thread_and_its_result_comes_back() -> None:
    async def main() -> None:
        pool = Threads(1)
        arguments = {"a": [1]}
        assert await pool.run(same, arguments, LONG) is arguments
        thread = await pool.run(current_thread, {}, LONG)
        assert thread is not threading.current_thread()
        assert (thread.daemon, thread.name) == (True, "portbook-worker")

    asyncio.run(main())


class Unheard(BaseException):
    """Not an `Exception`: what tools should not raise, and do."""


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (ValueError("x"), ValueError),
        (TimeoutError(), TimeoutError),
        (RecursionError(), RecursionError),
        (MemoryError(), MemoryError),
        (ExceptionGroup("many", [ValueError()]), ExceptionGroup),
        (Refused(Reason.BAD_ARGUMENTS), Refused),
        (Failed(Reason.BAD_RESULT), Failed),
        (StopIteration("x"), ToolExit),
        (StopAsyncIteration(), StopAsyncIteration),
        (SystemExit(3), ToolExit),
        (KeyboardInterrupt(), ToolExit),
        (GeneratorExit(), ToolExit),
        (asyncio.CancelledError(), ToolExit),
        (Unheard(), ToolExit),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_whatever_a_function_raises_is_an_exception_of_its_call_alone(
    raised: BaseException, seen: type[Exception]
) -> None:
    def function(_: Any) -> None:
        raise raised

    async def main() -> None:
        pool = Threads(1)
        thread = await pool.run(current_thread, {}, LONG)
        with pytest.raises(seen) as caught:
            await pool.run(function, {}, LONG)
        assert (caught.value is raised) == (seen is not ToolExit)
        assert await pool.run(current_thread, {}, LONG) is thread

    asyncio.run(main())


def test_a_function_sees_the_context_of_its_caller_and_does_not_change_it() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    def function(_: Any) -> str:
        seen = variable.get()
        variable.set("changed")
        return seen

    async def main() -> None:
        pool = Threads(1)
        for value in ("one", "two"):
            variable.set(value)
            assert await pool.run(function, {}, LONG) == value
            assert variable.get() == value

    asyncio.run(main())


def test_a_waiting_thread_keeps_nothing_of_the_last_call_alive() -> None:
    class Thing:
        pass

    async def main() -> None:
        pool = Threads(1)
        thing = Thing()
        trace = weakref.ref(thing)
        assert await pool.run(same, thing, LONG) is thing
        del thing
        await until(lambda: trace() is None)

    gc.collect()
    asyncio.run(main())


def test_the_loop_is_woken_up_once_for_all_jobs_that_end_before_it_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        pool, loop = Threads(1), asyncio.get_running_loop()
        woken: list[Any] = []
        wake = loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *act: (woken.append(act), wake(*act)))
        gate, last = threading.Event(), threading.Event()
        functions = [lambda _: gate.wait(LONG), *[same] * 20, lambda _: last.set()]
        runs = [asyncio.ensure_future(pool.run(each, at, LONG)) for at, each in enumerate(functions)]
        await asyncio.sleep(0)  # now all of them are queued
        gate.set()
        assert last.wait(LONG)  # holds the loop meanwhile
        assert len(woken) == 1
        assert await asyncio.gather(*runs) == [True, *range(1, 21), None]

    asyncio.run(main())


# --- how many threads


def test_calls_one_after_the_other_share_one_thread() -> None:
    async def main() -> None:
        pool = Threads(8)
        threads = {await pool.run(current_thread, {}, LONG) for _ in range(20)}
        assert len(threads) == 1

    asyncio.run(main())


def test_the_threads_of_a_closed_pool_end() -> None:
    async def main() -> None:
        pool = Threads(8)
        threads = {*await asyncio.gather(*(pool.run(current_thread, {}, LONG) for _ in range(3)))}
        pool.close()
        for thread in threads:
            await asyncio.to_thread(thread.join, LONG)
        assert not any(thread.is_alive() for thread in threads)

    asyncio.run(main())


def test_calls_at_the_same_time_run_at_the_same_time_up_to_the_size_of_the_pool() -> None:
    meeting = threading.Barrier(3)  # nobody gets past it unless all three run at once

    def meet(_: Any) -> threading.Thread:
        meeting.wait(LONG)
        return threading.current_thread()

    async def main() -> None:
        pool = Threads(3)
        threads = await asyncio.gather(*(pool.run(meet, {}, LONG) for _ in range(3)))
        assert len(set(threads)) == 3
        again = await asyncio.gather(*(pool.run(current_thread, {}, LONG) for _ in range(50)))
        assert set(again) <= set(threads)

    asyncio.run(main())


def test_a_full_pool_takes_what_waits_in_the_order_it_came(hang: Callable[[], Hanging]) -> None:
    order: list[int] = []

    async def main() -> None:
        pool = Threads(1)
        first = hang()
        calls = [asyncio.create_task(pool.run(first, -1, LONG))]
        await first.has_started()
        calls += [asyncio.create_task(pool.run(order.append, at, LONG)) for at in range(20)]
        first.release.set()
        await asyncio.gather(*calls)

    asyncio.run(main())
    assert order == list(range(20))


# --- deadlines


def test_the_deadline_holds_while_the_function_hangs_and_the_pool_still_serves(
    hang: Callable[[], Hanging],
) -> None:
    async def main() -> None:
        pool = Threads(1)
        for _ in range(5):
            hanging = hang()
            with pytest.raises(Failed) as caught:
                await pool.run(hanging, {}, SHORT)
            assert caught.value.reason is Reason.TIMEOUT
            assert hanging.started.is_set()
            assert not hanging.ended.is_set()
            assert await pool.run(same, "next", LONG) == "next"

    asyncio.run(main())


def test_a_thread_that_was_left_behind_ends_with_its_function_and_runs_nothing_else(
    hang: Callable[[], Hanging],
) -> None:
    async def main() -> None:
        pool = Threads(1)
        hanging = hang()
        with pytest.raises(Failed):
            await pool.run(hanging, {}, SHORT)
        hanging.release.set()
        thread = hanging.thread
        assert thread is not None
        await asyncio.to_thread(thread.join, LONG)
        assert not thread.is_alive()
        assert await pool.run(current_thread, {}, LONG) is not thread

    asyncio.run(main())


def test_a_result_or_an_exception_that_comes_too_late_is_dropped_in_silence(
    hang: Callable[[], Hanging],
) -> None:
    reported: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        pool = Threads(2)
        fine, failing = hang(), hang()

        def fail(_: Any) -> None:
            failing({})
            raise ValueError

        for function in (fine, fail):
            with pytest.raises(Failed):
                await pool.run(function, {}, SHORT)
        for hanging in (fine, failing):
            hanging.release.set()
        await until(lambda: pool._abandoned == 0)
        gc.collect()
        assert await pool.run(same, 1, LONG) == 1

    asyncio.run(main())
    assert reported == []


def test_a_function_that_outlives_its_event_loop_ends_in_silence(hang: Callable[[], Hanging]) -> None:
    hanging = hang()

    async def main() -> None:
        with pytest.raises(Failed):
            await Threads(1).run(hanging, {}, SHORT)

    asyncio.run(main())
    hanging.release.set()
    assert hanging.thread is not None
    hanging.thread.join(LONG)  # an exception in it would be a warning, and a warning is an error
    assert not hanging.thread.is_alive()


def test_a_call_that_never_started_is_refused_as_busy_and_never_runs(hang: Callable[[], Hanging]) -> None:
    ran: list[Any] = []

    async def main() -> None:
        pool = Threads(1)
        hanging = hang()
        first = asyncio.create_task(pool.run(hanging, "first", LONG))
        await hanging.has_started()
        with pytest.raises(Refused) as caught:
            await pool.run(ran.append, "second", SHORT)
        assert caught.value.reason is Reason.BUSY
        hanging.release.set()
        assert await first == "first"
        await pool.run(ran.append, "third", LONG)

    asyncio.run(main())
    assert ran == ["third"]


def test_a_call_that_waits_behind_a_hung_one_runs_once_that_is_left_behind(
    hang: Callable[[], Hanging],
) -> None:
    async def main() -> None:
        pool = Threads(1)
        hanging = hang()
        hung = asyncio.create_task(pool.run(hanging, {}, SHORT))
        waiting = [asyncio.create_task(pool.run(same, at, LONG)) for at in range(3)]
        assert await asyncio.wait_for(asyncio.gather(*waiting), LONG / 2) == [0, 1, 2]
        assert not hanging.ended.is_set()
        with pytest.raises(Failed):
            await hung

    asyncio.run(main())


# --- threads left behind


@pytest.fixture
def only_two_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "_MAX_ABANDONED", 2)


@pytest.mark.usefixtures("only_two_left_behind")
def test_too_many_threads_left_behind_make_the_pool_busy_until_one_returns(
    hang: Callable[[], Hanging],
) -> None:
    ran: list[Any] = []

    async def main() -> None:
        pool = Threads(1)
        hung = [hang(), hang()]
        for hanging in hung:
            with pytest.raises(Failed):
                await pool.run(hanging, {}, SHORT)
        with pytest.raises(Refused) as caught:
            await pool.run(ran.append, "too early", LONG)
        assert caught.value.reason is Reason.BUSY
        hung[0].release.set()
        await until(lambda: pool._abandoned == 1)
        await pool.run(ran.append, "served", LONG)

    asyncio.run(main())
    assert ran == ["served"]


@pytest.mark.usefixtures("only_two_left_behind")
def test_threads_that_are_left_serve_on_when_no_more_may_be_started(hang: Callable[[], Hanging]) -> None:
    async def main() -> None:
        pool = Threads(3)
        hung = [hang(), hang()]
        calls = [asyncio.create_task(pool.run(hanging, {}, SHORT)) for hanging in hung]
        third = hang()
        slow = asyncio.create_task(pool.run(third, "third", LONG))
        await third.has_started()
        for call in calls:
            with pytest.raises(Failed):
                await call
        waiting = [asyncio.create_task(pool.run(current_thread, {}, LONG)) for _ in range(5)]
        third.release.set()
        assert await slow == "third"
        assert set(await asyncio.gather(*waiting)) == {third.thread}

    asyncio.run(main())


@pytest.mark.usefixtures("only_two_left_behind")
def test_a_call_that_waits_while_no_thread_may_be_started_runs_when_one_returns(
    hang: Callable[[], Hanging],
) -> None:
    async def main() -> None:
        pool = Threads(2)
        hung = [hang(), hang()]
        calls = [asyncio.create_task(pool.run(hanging, {}, SHORT)) for hanging in hung]
        waiting = asyncio.create_task(pool.run(same, "patient", LONG))
        for call in calls:
            with pytest.raises(Failed):
                await call
        hung[0].release.set()
        assert await asyncio.wait_for(waiting, LONG / 2) == "patient"

    asyncio.run(main())


# --- cancellation


def test_a_cancelled_call_leaves_its_thread_behind_and_the_pool_serves_on(
    hang: Callable[[], Hanging],
) -> None:
    async def main() -> None:
        pool = Threads(1)
        hanging = hang()
        call = asyncio.create_task(pool.run(hanging, {}, LONG))
        await hanging.has_started()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await pool.run(same, "next", LONG) == "next"
        assert not hanging.ended.is_set()
        assert pool._abandoned == 1
        hanging.release.set()
        await until(lambda: pool._abandoned == 0)

    asyncio.run(main())


def test_a_call_that_is_cancelled_while_it_waits_never_runs(hang: Callable[[], Hanging]) -> None:
    ran: list[Any] = []

    async def main() -> None:
        pool = Threads(1)
        hanging = hang()
        first = asyncio.create_task(pool.run(hanging, {}, LONG))
        await hanging.has_started()
        second = asyncio.create_task(pool.run(ran.append, "second", LONG))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        hanging.release.set()
        await first
        await pool.run(ran.append, "third", LONG)
        assert (pool._outstanding, pool._threads, pool._abandoned) == (0, 1, 0)

    asyncio.run(main())
    assert ran == ["third"]


def test_after_every_kind_of_ending_the_books_are_balanced(hang: Callable[[], Hanging]) -> None:
    async def main() -> None:
        pool = Threads(2)
        hung = [hang() for _ in range(6)]
        calls = [asyncio.create_task(pool.run(hanging, {}, SHORT)) for hanging in hung]
        calls += [asyncio.create_task(pool.run(same, at, LONG)) for at in range(6)]
        calls += [asyncio.create_task(pool.run(len, None, LONG))]
        await hung[0].has_started()
        calls[-2].cancel()
        endings = await asyncio.gather(*calls, return_exceptions=True)
        # Two hang, and the other four are refused with them, having waited as long; the rest is served.
        assert {type(ending) for ending in endings[:6]} <= {Failed, Refused}
        assert [type(ending) for ending in endings[6:]] == [int] * 5 + [asyncio.CancelledError, TypeError]
        for hanging in hung:
            hanging.release.set()
        await until(lambda: pool._abandoned == 0)
        assert pool._outstanding == 0
        assert pool._threads <= 2

    asyncio.run(main())
