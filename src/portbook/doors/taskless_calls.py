"""Running a coroutine up to its first wait: most calls never wait, and need no task of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from portbook.net.taskless_waits import TasklessFuture

__all__ = ["Remainder", "SteppedCall"]

T = TypeVar("T")


class Remainder(Generic[T]):
    """The rest of a coroutine that has run up to its first wait.

    This is safe because only our own stages run before it: a tool's coroutine has a task of its own.
    """

    __slots__ = ("_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, T], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def close(self) -> None:
        """End the coroutine where it waits."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        waiting_for = self._waiting_for
        while True:
            try:
                sent = yield waiting_for
            except BaseException as thrown:  # noqa: BLE001 - a cancellation, passed into the coroutine
                step = self._coroutine.throw
                value: Any = thrown
            else:
                step, value = self._coroutine.send, sent
            try:
                waiting_for = step(value)
            except StopIteration as ended:
                return ended.value


class SteppedCall(Generic[T]):
    """A coroutine that has to wait: stepped by what it waits for, and by a task from where it needs one."""

    __slots__ = ("_coroutine", "_ended", "_is_cancelled", "_on_end", "_task", "_waiting_for")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        waiting_for: Any,
        on_end: Callable[[SteppedCall[T], T | None], None],
    ) -> None:
        """Run the rest of `coroutine`; `on_end` gets what it returned, or None where it was cancelled."""
        self._coroutine = coroutine
        self._on_end = on_end
        self._is_cancelled = False
        """Whether it is still to learn that it is cancelled."""
        self._task: asyncio.Task[T] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._wait(waiting_for)

    def cancel(self) -> None:
        """Cancel what it waits for, as a task that is cancelled does."""
        if self._task is not None:
            self._task.cancel()
        elif self._waiting_for is not None and not self._waiting_for.cancel():
            self._is_cancelled = True  # what it waits for is there: it learns of both in one step

    def ended(self) -> asyncio.Future[None]:
        """Return a future that is done once it has ended."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
        return self._ended

    def _wait(self, waiting_for: Any) -> None:
        self._waiting_for: Any = waiting_for
        if isinstance(waiting_for, TasklessFuture):
            self._waiting_for.take(self._step)
            if self._is_cancelled and self._waiting_for.cancel():
                self._is_cancelled = False
            return
        rest = _awaited(Remainder(self._coroutine, waiting_for))
        self._task = asyncio.get_running_loop().create_task(rest)
        if self._is_cancelled:
            self._task.cancel()
        self._task.add_done_callback(self._leave_task)

    def _step(self) -> None:
        answer = None
        try:
            if self._is_cancelled:
                self._is_cancelled = False
                waiting_for = self._coroutine.throw(asyncio.CancelledError())
            else:
                waiting_for = self._coroutine.send(None)
        except StopIteration as ended:
            answer = ended.value
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - a bug of ours, and whoever steps this goes on
            _report(error)
        except BaseException:
            self._end(None)
            raise
        else:
            self._wait(waiting_for)
            return
        self._end(answer)

    def _leave_task(self, task: asyncio.Task[T]) -> None:
        # A callback, because a task that is cancelled before its first step runs none of its own code.
        answer = None
        try:
            self._coroutine.close()
            if not task.cancelled():
                answer = task.result()
        except Exception as error:  # noqa: BLE001 - a bug of ours, and the door has other calls
            _report(error)
        finally:
            self._end(answer)

    def _end(self, answer: T | None) -> None:
        self._waiting_for = None  # it refers back to this: the memory is free at once, without the collector
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        try:
            self._on_end(self, answer)
        except Exception as error:  # noqa: BLE001 - whoever steps this has others to step
            _report(error)


def _report(error: BaseException) -> None:
    message = "a call ended without an answer"
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


async def _awaited(rest: Remainder[T]) -> T:
    return await rest
