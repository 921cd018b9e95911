"""Opens the store's file: private, write-ahead, waiting for other processes. Rejects what is not a store."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import apsw

from portbook.stores.connection_clock_and_errors import MEMORY, FileConnection, StoreError
from portbook.stores.migrations import TABLES_VERSION, migrate, version_of_tables

__all__ = ["connect", "make_private", "refuse_exposed", "version_at"]

# Files of the store that users other than their owner can read or write: made private, or refused.
#
# The store holds digests of keys, approvals and the key that signs states. Who can write it can approve
# calls.

# What the group and all other users may do.
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def refuse_exposed(path: Path) -> None:
    """Check that `path`, where it exists, is private or can be made so by this process.

    Raises `StoreError` where further users can read or write it, and it belongs to a different user.
    """
    status = _status(path)
    if status is not None and status.st_mode & _OTHERS and status.st_uid != os.geteuid():
        raise StoreError(
            f"{path}: users other than its owner can read or write it, and it belongs to a different user; "
            f"have its owner run `chmod go= {path.name}`, or choose a different [store] path"
        )


def make_private(path: Path) -> None:
    """Take the permissions on `path` from all users but its owner, where they have any.

    Raises `StoreError` where it belongs to a different user, `OSError` where it cannot be changed.
    """
    refuse_exposed(path)
    status = _status(path)
    if status is not None and status.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


# How long to wait for other processes, whose transactions take milliseconds.
_BUSY_MS: Final = 5000

# How often two processes that create the same file at once wait for each other, 2 s in total.
_SWITCH_ATTEMPTS: Final = 100
_SWITCH_PAUSE_S: Final = 0.02


def connect(path: Path, draw: Callable[[int], bytes]) -> FileConnection:
    """Return a connection to the store at `path`, created where there is none, or to one in memory.

    `draw` returns random bytes for the key of a new store.

    Raises `StoreError` where the file belongs to a different program or a newer version, or is exposed to
    further users; `OSError` or `apsw.Error` where it cannot be opened.
    """
    is_memory = path.name == MEMORY
    if not is_memory:
        for each in _files_of(path):
            refuse_exposed(each)
        if not path.exists():
            _make_file(path)
    connection = cast("FileConnection", apsw.Connection(MEMORY if is_memory else str(path)))
    try:
        connection.set_busy_timeout(_BUSY_MS)
        connection.transaction_mode = "IMMEDIATE"
        connection.execute("PRAGMA trusted_schema = OFF")  # a manipulated file must not run code
        version = version_of_tables(connection, path)  # before changing a file that may not be a store
        if not is_memory:
            for each in _files_of(path):  # only now: it is a store
                make_private(each)
            _write_ahead(connection)
        if version < TABLES_VERSION:
            migrate(connection, path, draw)
    except BaseException:
        connection.close()
        raise
    return connection


def version_at(path: Path) -> int:
    """Return the version of the tables in a file that is there; it is only read.

    Raises `StoreError` where it is not a store of this Portbook, `apsw.Error` where it cannot be read.
    """
    connection = cast("FileConnection", apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY))
    try:
        connection.set_busy_timeout(_BUSY_MS)
        return version_of_tables(connection, path)
    finally:
        connection.close()


def _files_of(path: Path) -> tuple[Path, ...]:
    """Return the file of the store, and those that SQLite keeps beside it."""
    return path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))


def _make_file(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its side files the same mode."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    # Only a new file: closing a file that a connection of this process has open would release its locks.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _write_ahead(connection: FileConnection) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    for attempt in range(_SWITCH_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:  # two processes switch a new file at once; SQLite does not wait here
            if attempt == _SWITCH_ATTEMPTS - 1:
                raise
            time.sleep(_SWITCH_PAUSE_S)
        else:
            return
