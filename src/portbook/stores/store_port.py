"""`StorePort`: what a kind of store offers; what is stored is the same in all kinds.

Statements are written once, for every kind: `?` for each value, and what SQLite and PostgreSQL both have. A
statement that decides names what it expects (`UPDATE … WHERE state = 'approved' RETURNING id`), for a kind
may run the transactions of several processes at once. Work that reads first and writes afterwards takes a
lock by name. Work may run a second time, where its first transaction was undone: it changes nothing but the
store.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol, TypeVar

from portbook.stores.connection_clock_and_errors import Connection

__all__ = ["RunOwner", "StorePort", "Version"]

T = TypeVar("T")

# If two versions differ, some process may have written in between.
Version = tuple[int, int]


class RunOwner(Protocol):
    """This process as the owner of the calls that it runs; also tells whether other owners are alive."""

    def hold(self) -> float:
        """Prepare to own calls; return the moment of that, for `confirm`.

        Raises `StoreError` where this process cannot own any.
        """
        ...

    def claim(self, connection: Connection) -> str:
        """Return the name under which this process may own a call, inside the transaction that redeems it."""
        ...

    def confirm(self, name: str, since: float) -> None:
        """Note that a claim of `name` was committed which was made after the moment `since`."""
        ...

    def may_start(self, name: str) -> bool:
        """Return whether `name` still owns what it claimed; ask right before a call starts."""
        ...

    def keeps(self, connection: Connection, name: str) -> bool:
        """Return whether `name` still owns its calls, inside the transaction that writes how one ended."""
        ...

    def abandon(self, name: str, is_used: Callable[[], bool]) -> None:
        """Note that nobody knows whether a claim of `name` was committed: it claims nothing more.

        It is kept alive while `is_used` says that calls still run under it, and then given up.
        """
        ...

    def lives(self, name: str | None, connection: Connection) -> bool:
        """Return whether the owner with this name is alive; one that is not never comes back."""
        ...

    def release(self) -> None:
        """Give up what this process owns, after the store was closed."""
        ...


class StorePort(Protocol):
    """A store of any kind. It is opened on first use."""

    @property
    def place(self) -> str:
        """Return where it is, for people; never with a password."""
        ...

    @property
    def path(self) -> Path | None:
        """Return the file that it is in; None where it is in no file."""
        ...

    @property
    def is_memory(self) -> bool:
        """Return whether it ends with this process."""
        ...

    @property
    def spans_machines(self) -> bool:
        """Return whether machines share it, whose clocks differ and whose folders may have the same path."""
        ...

    @property
    def key(self) -> bytes:
        """Return the store's own key, for digests that only this store can compare.

        Never waits in a store that was opened before.

        Raises `StoreError` where it cannot be read.
        """
        ...

    def read(self, query: Callable[[Connection], T], absent: T) -> T:
        """Return the result of `query`, or `absent` where the store does not exist yet.

        `query` sees one state of the store. This may wait for the network, so a coroutine uses `fetch`.

        Raises `StoreError` where it cannot be read.
        """
        ...

    async def fetch(self, query: Callable[[Connection], T], absent: T) -> T:
        """Return what `read` returns, without holding the event loop while a network is waited for.

        Raises `StoreError` where it cannot be read.
        """
        ...

    def watched(self, query: Callable[[Connection], T], absent: T) -> Callable[[], T]:
        """Return what gives the result of `query` as of at most a second ago, whichever process changed it.

        It never waits for a network. It raises `StoreError` where the store cannot be read.
        """
        ...

    def submit(self, work: Callable[[Connection], T], *, lock: str | None = None) -> Future[T]:
        """Run `work` in a transaction; the future has its result once the transaction is on disk.

        While it runs, no work with the same `lock` runs in any process. Where it is not known whether the
        transaction was committed, the future raises `UnknownOutcome`, and any other `StoreError` where it
        was not.

        Raises `StoreError` where the store cannot be opened.
        """
        ...

    def version(self) -> Version:
        """Return a value that differs after every write by any process. It costs microseconds.

        Raises `StoreError` where it cannot be read.
        """
        ...

    def tables_version(self) -> int:
        """Return the version of the tables as it is, 0 where there are none; nothing is migrated.

        Raises `StoreError` where it cannot be read, or this Portbook cannot use such tables.
        """
        ...

    def owner(self, draw_name: Callable[[], str]) -> RunOwner:
        """Return this process as an owner of calls; `draw_name` returns names that are never used again."""
        ...

    async def check(self) -> None:
        """Check that the store can be written or created.

        Raises `StoreError` where it cannot.
        """
        ...

    def close(self) -> None:
        """Finish submitted work and close it; the store cannot be used afterwards."""
        ...
