"""`ReusableTask`: a task that is there before the coroutine which it runs.

It waits until a coroutine has taken its first step in its place, and then takes the further ones.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Callable, Generator
from typing import Any, Final

from portbook.exception_place import ToolExit
from portbook.executors.eager_task import start_now

__all__ = ["ReusableTask"]

# Of the tasks of tools: a number of its own for each would cost more than the rest of making one.
_NAME: Final = "portbook-tool"


class ReusableTask:
    """A task, and the context that its coroutine runs in."""

    __slots__ = (
        "_has_coroutine",
        "_has_waited",
        "_steps",
        "_waiting_for",
        "context",
        "loop",
        "result",
        "step",
        "task",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.context = contextvars.copy_context()
        self._has_waited: asyncio.Future[None] = loop.create_future()
        self._has_coroutine = False
        self._waiting_for: Any = None
        self.result: Any = None
        """What the last coroutine returned, until it is taken."""
        self._steps = _steps_of(self)
        self.step: Callable[[Any], Any] = self._steps.send
        """Takes the first step of the coroutine that it is given, and returns what that waits for; or this
        object, where it has ended. A coroutine that is stepped by itself would end with an exception, at
        three times the cost."""
        self.step(None)
        self.task: Any = start_now(self._run(), _NAME, self.context)
        self._log_if_lost(is_in_use=False)

    def run_on(self, waiting_for: Any) -> asyncio.Task[Any]:
        """Return the task, which takes all further steps of the coroutine that took its first."""
        self._has_coroutine, self._waiting_for = True, waiting_for
        if not self._has_waited.done():  # it is, where the coroutine has cancelled its task
            self._has_waited.set_result(None)
        self._log_if_lost(is_in_use=True)
        return self.task

    def _log_if_lost(self, *, is_in_use: bool) -> None:
        # A loop reports a task that is dropped before its end; that of an idle one may be.
        self.task._log_destroy_pending = is_in_use  # noqa: SLF001 - asyncio's own way to say so

    async def _run(self) -> Any:
        try:
            return await _FurtherSteps(self)
        except (SystemExit, KeyboardInterrupt) as error:  # a task would let these end the whole process
            raise ToolExit(error) from None

    def further_steps(self) -> Generator[Any, Any, Any]:
        """Wait for the first step of a coroutine, then take the others; return its result."""
        thrown: BaseException | None = None
        try:
            yield from self._has_waited
        except BaseException as error:  # noqa: BLE001 - a cancellation, passed into the coroutine
            thrown = error
        waiting_for, steps = self._waiting_for, self._steps
        if not self._has_coroutine:  # the loop ends, and no coroutine came
            raise thrown or asyncio.CancelledError
        while waiting_for is not self:
            if thrown is None:
                try:
                    sent = yield waiting_for
                except BaseException as error:  # noqa: BLE001 - as above
                    thrown = error
                else:
                    waiting_for = steps.send(sent)
                    continue
            error, thrown = thrown, None
            waiting_for = steps.throw(error)
        steps.close()  # it holds this object, which holds it
        return self.result


@types.coroutine
def _steps_of(reusable: ReusableTask) -> Generator[Any, Any, Any]:
    """Take the steps of one coroutine after the other; yield `reusable` at the end of each."""
    coroutine = yield
    while True:
        reusable.result = yield from coroutine
        del coroutine
        coroutine = yield reusable


class _FurtherSteps:
    __slots__ = ("_reusable",)

    def __init__(self, reusable: ReusableTask) -> None:
        self._reusable = reusable

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._reusable.further_steps()
