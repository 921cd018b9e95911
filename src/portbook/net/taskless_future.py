"""`TasklessFuture`: a future after which its waiter may go on outside of a task."""

from __future__ import annotations

import asyncio
from typing import TypeVar

__all__ = ["TasklessFuture"]

T = TypeVar("T")


class TasklessFuture(asyncio.Future[T]):
    """A promise of whoever waits for it: until the next wait, nothing asks for the current task.

    `asyncio.timeout` does, for example, and `TimeLimited` does not. A door can then step the call itself, and
    does without a task: to make and to start one costs as much as a tenth of a call.
    """

    __slots__ = ()
