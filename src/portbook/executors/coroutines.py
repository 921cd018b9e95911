"""Runs tools' coroutines, each in a task, with a deadline that holds even if one ignores cancellation.

Each has its task from its first step on, so that `asyncio.timeout` and the like inside it find the task they
expect: a door may run the first step of a call in one task and the rest in a different one. The first step is
taken at once, and most coroutines take no second: then the task is kept for the next one.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import types
from asyncio import get_running_loop
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any, Final, TypeVar, cast

from portbook.errors import Failed, Reason
from portbook.exception_place import ToolExit
from portbook.model import NOBODY, InputNeeded, JSONObject, Run, Start

__all__ = ["CURRENT_TASKS", "Coroutines", "start_now"]

# Starts a task that has run up to its first wait: one that never waits needs no iteration of the loop.
#
# Each coroutine has a task of its own, so that `asyncio.timeout` and the like inside it find the task they
# expect.

T = TypeVar("T")

if sys.version_info >= (3, 12):
    _swap: Final[Callable[..., Any]] = vars(asyncio.tasks)["_swap_current_task"]

    class _CurrentTasks:
        """The current task of each loop, as the dictionary that it was in 3.11."""

        get = staticmethod(asyncio.current_task)

        def __setitem__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
            _swap(loop, task)

        def __delitem__(self, loop: asyncio.AbstractEventLoop) -> None:
            _swap(loop, None)

    CURRENT_TASKS: Final = _CurrentTasks()

    def start_now(
        coroutine: Coroutine[Any, Any, T], name: str, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        """Return the task of `coroutine`, which has run up to its first wait, in a `context` of its own."""
        loop = asyncio.get_running_loop()
        return asyncio.Task(coroutine, loop=loop, name=name, context=context, eager_start=True)

else:
    CURRENT_TASKS: Final[dict[Any, Any]] = vars(asyncio.tasks)["_current_tasks"]  # what `current_task` reads

    def start_now(
        coroutine: Coroutine[Any, Any, T], name: str, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        """Return the task of `coroutine`, which has run up to its first wait, in a `context` of its own.

        A new task asks the loop to take its first step soon. Here the request is kept from the loop and the
        step is taken now, while the task around this call is not the current one.
        """
        loop: Any = asyncio.get_running_loop()
        steps: list[Callable[[], None]] = []

        def keep(step: Callable[[], None], *, context: contextvars.Context) -> None:
            steps.append(step)

        context = contextvars.copy_context() if context is None else context
        # An attribute of this loop hides the method of its class; Python's loops and uvloop allow that.
        loop.call_soon = keep
        try:
            task: asyncio.Task[T] = asyncio.Task(coroutine, loop=loop, name=name, context=context)
        finally:
            del loop.call_soon
        around = CURRENT_TASKS.pop(loop, None)
        try:
            context.run(steps[0])
        finally:
            if around is not None:
                CURRENT_TASKS[loop] = around
        return task


# Of the tasks of tools: a number of its own for each would cost more than the rest of making one.
_NAME: Final = "portbook-tool"


class Coroutines:
    """Runs coroutines, and tracks those that were abandoned."""

    def __init__(self) -> None:
        self._strays: set[asyncio.Task[Any]] = set()
        self._idle: _ReusableTask | None = None
        """Kept for the next coroutine. One is enough: few take their first step inside that of another."""

    @property
    def has_strays(self) -> bool:
        """Return whether an abandoned coroutine still runs, because it ignores cancellation."""
        return bool(self._strays)

    def starter(
        self,
        begin: Callable[[JSONObject], Coroutine[Any, Any, Any]],
        begin_within: Callable[[Run, JSONObject], Coroutine[Any, Any, Any]] | None = None,
        is_waiting: Callable[[Run], bool] | None = None,
    ) -> Start:
        """Return what runs the coroutines that `begin` returns: their result, or what waits for it.

        With `begin_within`, the run of the call is an argument, too. The deadline is suspended while the
        coroutine `is_waiting` for its caller.

        It raises `Failed` where a coroutine does not end in time, and any exception of it.
        """
        current_tasks = CURRENT_TASKS

        def start(arguments: JSONObject, run: Run) -> Any | Coroutine[Any, Any, Any]:
            coroutine = begin(arguments) if begin_within is None else begin_within(run, arguments)
            loop = get_running_loop()
            reusable, self._idle = self._idle, None
            # Its context has to hold what the one around it does: its last coroutine may have changed it. One
            # step nearly always, as they share their parts.
            try:
                is_fit = reusable is not None and reusable.loop is loop and reusable.context == copy_context()
            except Exception:  # noqa: BLE001 - a value that cannot be compared was changed
                is_fit = False
            if reusable is None or not is_fit:
                reusable = _ReusableTask(loop)
            # The first step, as if the task took it.
            around = current_tasks.get(loop)
            current_tasks[loop] = reusable.task
            try:
                waiting_for = reusable.context.run(reusable.step, coroutine)
            except (Exception, InputNeeded):
                raise
            except BaseException as error:  # noqa: BLE001 - it cancelled itself, or would end the process
                raise ToolExit(error) from None
            finally:
                if around is None:
                    del current_tasks[loop]
                else:
                    current_tasks[loop] = around
            if waiting_for is not reusable:
                return self._wait(reusable.run_on(waiting_for), run, is_waiting)
            if reusable.task.cancelling():
                raise ToolExit(asyncio.CancelledError())
            result, reusable.result = reusable.result, None
            self._idle = reusable
            return result

        return start

    def run(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float) -> Any | Coroutine[Any, Any, Any]:
        """Run a single coroutine."""
        return self.starter(lambda _: coroutine)({}, Run(round(timeout_s * 1000), NOBODY))

    async def _wait(self, task: asyncio.Task[Any], run: Run, is_waiting: Callable[[Run], bool] | None) -> Any:
        timeout_s = run.timeout_ms / 1000
        try:
            await asyncio.wait((task,), timeout=timeout_s)
            while not task.done() and is_waiting is not None and is_waiting(run):
                await asyncio.wait((task,), timeout=timeout_s)
        finally:
            if not task.done():
                self._abandon(task)
        if not task.done():
            raise Failed(Reason.TIMEOUT)
        try:
            return task.result()
        except (Exception, InputNeeded):
            raise
        except BaseException as error:  # noqa: BLE001 - it cancelled itself
            raise ToolExit(error) from None

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        # Cancelled, but not awaited: a coroutine may ignore cancellation.
        task.cancel()
        self._strays.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._strays.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that the loop does not log it


class _ReusableTask:
    """A task that is there before the coroutine which it runs, and the context that both have.

    It waits until a coroutine has taken its first step in its place, and then takes the further ones.
    """

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
        self.context = copy_context()
        self._has_waited: asyncio.Future[None] = loop.create_future()
        self._has_coroutine = False
        self._waiting_for: Any = None
        self.result: Any = None
        """What the last coroutine returned, until it is taken."""
        self._steps = cast("Generator[Any, Any, Any]", _steps_of(self))
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
def _steps_of(reusable: _ReusableTask) -> Generator[Any, Any, Any]:
    """Take the steps of one coroutine after the other; yield `reusable` at the end of each."""
    coroutine = yield
    while True:
        reusable.result = yield from coroutine
        del coroutine
        coroutine = yield reusable


class _FurtherSteps:
    __slots__ = ("_reusable",)

    def __init__(self, reusable: _ReusableTask) -> None:
        self._reusable = reusable

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._reusable.further_steps()
