"""Running something up to its first wait: most of it never waits, and needs no task of its own."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

__all__ = ["Remainder"]

T = TypeVar("T")


class Remainder(Generic[T]):
    """What is left of a coroutine that has run up to its first wait.

    Safe because only our own stages run before it: a tool's coroutine has a task of its own.
    """

    __slots__ = ("_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, T], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def __await__(self) -> Generator[Any, Any, T]:
        waiting_for = self._waiting_for
        while True:
            try:
                sent = yield waiting_for
            except BaseException as thrown:  # noqa: BLE001 - a cancellation, for the coroutine to see
                step = self._coroutine.throw
                value: Any = thrown
            else:
                step, value = self._coroutine.send, sent
            try:
                waiting_for = step(value)
            except StopIteration as ended:
                return ended.value
