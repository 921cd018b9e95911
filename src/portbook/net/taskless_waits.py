"""What a call waits for before it has a task of its own, and until when.

`TimeLimited` is a coroutine that has to end by a certain time, whichever task runs it. `asyncio.timeout`
belongs to one task from its beginning to its end. A call has none at first: a door takes its first step at
once, and only the rest, where there is one, in a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from math import inf
from typing import Any, Final, Generic, TypeVar

__all__ = ["SharedTimer", "TasklessFuture", "TimeLimited"]

T = TypeVar("T")


class TimeLimited(Generic[T]):
    """The result of a coroutine, once: what it waits for is cancelled when its time is over."""

    __slots__ = ("_coroutine", "_is_due", "_is_over", "_until", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, T], until: float) -> None:
        """Run `coroutine` `until` that time on the loop's clock.

        Awaiting it raises `TimeoutError` where it takes longer.
        """
        self._coroutine = coroutine
        self._until = until
        self._waiting_for: asyncio.Future[Any] | None = None
        self._is_over = False
        self._is_due = False
        """Whether the coroutine is still to learn that its time is over."""

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine = self._coroutine
        timer = asyncio.get_running_loop().call_at(self._until, self._end)
        step: Callable[[Any], Any] = coroutine.send
        given: Any = None
        try:
            while True:
                self._waiting_for = step(given)
                try:
                    given = yield self._waiting_for
                    step = coroutine.send
                except BaseException as thrown:  # noqa: BLE001 - a cancellation, passed into the coroutine
                    step, given = coroutine.throw, thrown
                if self._is_due:
                    self._is_due = False
                    step, given = coroutine.throw, asyncio.CancelledError()
        except StopIteration as ended:
            return ended.value
        except asyncio.CancelledError:
            if self._is_over and not _is_cancelled():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()

    def _end(self) -> None:
        """Cancel what the coroutine waits for, as a task that is cancelled does."""
        self._is_over = True
        # Where that has just ended, or is no future, the coroutine learns it with its next step.
        self._is_due = self._waiting_for is None or not self._waiting_for.cancel()


def _is_cancelled() -> bool:
    """Return whether somebody cancels the task, too: then it has to end, in time or not."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


# `SharedTimer`: ends what is waited for too long, with one timer for all.
#
# A timer of its own for each call would cost as much as the rest of the waiting, and nearly none is ever due.

# How late the end may come, at most, so that many deadlines that differ a little are looked at together.
_GRAIN_S: Final = 0.005


class SharedTimer:
    """The futures of one event loop that have to be done by a certain time."""

    __slots__ = ("_loop", "_timer", "_timer_at", "_until")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._until: dict[asyncio.Future[Any], float] = {}

    def add(self, future: asyncio.Future[Any], until: float) -> None:
        """Fail `future` with a `TimeoutError` at that time on the loop's clock, unless it is removed."""
        self._until[future] = until
        loop = future.get_loop()
        if until < self._timer_at or loop is not self._loop:
            if loop is not self._loop:  # of those who waited in a loop that was stopped, nobody is left
                self._loop, self._timer, self._until = loop, None, {future: until}
            self._set(loop, until)

    def remove(self, future: asyncio.Future[Any]) -> None:
        """Forget `future`, which was added once."""
        self._until.pop(future, None)

    def close(self) -> None:
        """Stop the timer; what is still waited for ends now, because nothing would end it later."""
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._until = self._until, {}
        for future in waiting:
            if not future.done() and not future.get_loop().is_closed():
                future.set_exception(TimeoutError())
        self._loop, self._timer, self._timer_at = None, None, inf

    def _set(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = loop.call_at(at, self._end_due, loop), at

    def _end_due(self, loop: asyncio.AbstractEventLoop) -> None:
        now, self._timer, self._timer_at = loop.time(), None, inf
        due = [future for future, until in self._until.items() if until <= now]
        for future in due:
            del self._until[future]
            if not future.done():
                future.set_exception(TimeoutError())
        if self._until:
            self._set(loop, max(min(self._until.values()), now + _GRAIN_S))


# `TasklessFuture`: a future whose waiter can go on outside of a task, and at once.


class TasklessFuture(asyncio.Future[T]):
    """A promise of whoever waits for it: until the next wait, nothing asks for the current task.

    `asyncio.timeout` does, for example, and `TimeLimited` does not. A door can then take the further steps of
    a call itself: to make a task, to start it and to wake it up costs as much as a fifth of a call.
    """

    # Of the class, so that making one takes no step of Python.
    _step: Callable[[], None] | None = None

    def take(self, step: Callable[[], None]) -> None:
        """Call `step` once this is done: for whoever drives the coroutine that waits for it."""
        self._asyncio_future_blocking = False  # as a task does that takes a future from a coroutine
        self._step = step

    def settle(self, result: T) -> None:
        """Set the result, and let the waiter go on before this returns."""
        super().set_result(result)
        if self._step is not None:
            self._step()

    def set_result(self, result: T, /) -> None:
        """Set the result; the waiter goes on soon."""
        super().set_result(result)
        self._step_soon()

    def set_exception(self, exception: Any, /) -> None:
        """Set an exception; the waiter goes on soon."""
        super().set_exception(exception)
        self._step_soon()

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel it; the waiter goes on soon."""
        if not super().cancel(msg):
            return False
        self._step_soon()
        return True

    def _step_soon(self) -> None:
        if self._step is not None:
            self.get_loop().call_soon(self._step)
