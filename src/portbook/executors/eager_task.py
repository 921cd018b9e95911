"""Starts a task that has run up to its first wait: one that never waits needs no iteration of the loop.

Each coroutine has a task of its own, so that `asyncio.timeout` and the like inside it find the task they
expect.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from operator import setitem
from typing import Any, Final, TypeAlias, TypeVar

__all__ = ["current_task_of", "enter_task", "leave_task", "start_now"]

T = TypeVar("T")

_AnyTask: TypeAlias = "asyncio.Task[Any]"
_Find: TypeAlias = "Callable[[asyncio.AbstractEventLoop], _AnyTask | None]"
_Enter: TypeAlias = "Callable[[asyncio.AbstractEventLoop, _AnyTask], object]"
_Leave: TypeAlias = "Callable[[asyncio.AbstractEventLoop], object]"


if sys.version_info >= (3, 12):
    _swap: Final[Callable[..., Any]] = vars(asyncio.tasks)["_swap_current_task"]
    # Find the current task of a loop; make a task the current one; make none the current one.
    current_task_of: Final[_Find] = asyncio.current_task
    enter_task: Final[_Enter] = _swap

    def leave_task(loop: asyncio.AbstractEventLoop) -> None:
        """Make no task the current one of a loop."""
        _swap(loop, None)

    def start_now(
        coroutine: Coroutine[Any, Any, T], name: str, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        """Return the task of `coroutine`, which has run up to its first wait, in a `context` of its own."""
        loop = asyncio.get_running_loop()
        return asyncio.Task(coroutine, loop=loop, name=name, context=context, eager_start=True)

else:
    _current_tasks: Final[dict[Any, Any]] = vars(asyncio.tasks)["_current_tasks"]  # what `current_task` reads
    current_task_of: Final[_Find] = _current_tasks.get
    enter_task: Final[_Enter] = partial(setitem, _current_tasks)  # half the cost of the dict's own method
    leave_task: Final[_Leave] = _current_tasks.__delitem__

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
        around = _current_tasks.pop(loop, None)
        try:
            context.run(steps[0])
        finally:
            if around is not None:
                enter_task(loop, around)
        return task
