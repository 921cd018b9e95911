"""`TasklessFuture`: a future whose waiter can go on outside of a task, and at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["TasklessFuture"]

T = TypeVar("T")


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
