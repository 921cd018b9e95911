"""What the store needs of a connection to its database, in types of our own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self

__all__ = ["MEMORY", "Connection", "Cursor"]

# The path that stands for no file at all: such a store ends with its process.
MEMORY: Final = ":memory:"


class Cursor(Protocol):
    """The rows that a statement finds."""

    @property
    def get(self) -> Any:
        """Return them with the least structure: one row of one column is its value, none is None."""
        ...

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, if there is one."""
        ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def close(self) -> None:
        """Let go of the rows that were not read."""
        ...


class Connection(Protocol):
    """A connection; `with` makes a transaction of what it holds.

    It is an `apsw.Connection`, whose own types name that of bytes as Python 3.12 does, which 3.11 does not
    know.
    """

    transaction_mode: str

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is under way."""
        ...

    def execute(self, statements: str, bindings: Sequence[Any] | None = None, /) -> Cursor:
        """Run a statement, or several."""
        ...

    def set_busy_timeout(self, milliseconds: int, /) -> None:
        """Wait so long for other processes that write."""
        ...

    def close(self) -> None:
        """Close it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None, /
    ) -> bool | None: ...
