"""`TimeLimited`: a coroutine that has to end by a certain time, whichever task runs it.

`asyncio.timeout` belongs to one task from its beginning to its end. A call has none at first: a door takes
its first step at once, and only the rest, where there is one, in a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

__all__ = ["TimeLimited"]

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
