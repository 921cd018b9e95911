"""Running a coroutine up to its first wait: most calls never wait, and need no task of their own."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

__all__ = ["Remainder"]

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
