"""The tables of the store: creates and migrates them, and rejects files that are not a store."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import apsw

from portbook.stores.connections import MEMORY, Connection
from portbook.stores.errors import StoreError
from portbook.stores.privacy import make_private, refuse_exposed

__all__ = ["connect"]

# Marks the file as Portbook's in its header: "pbk1".
_APPLICATION: Final = 0x70626B31

# How long to wait for other processes, whose transactions take milliseconds.
_BUSY_MS: Final = 5000

# How often two processes that create the same file at once wait for each other, 2 s in total.
_SWITCH_ATTEMPTS: Final = 100
_SWITCH_PAUSE_S: Final = 0.02

_HMAC_KEY_BYTES: Final = 32

# The states `expired` and `unknown` are not stored: they follow from the clock and from locks.
_TICKETS_AND_KEYS: Final = """
CREATE TABLE secret (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ticket (
    id            TEXT NOT NULL PRIMARY KEY,
    state         TEXT NOT NULL
                  CHECK (state IN ('pending', 'approved', 'denied', 'running', 'done', 'failed')),
    binding       TEXT NOT NULL,
    tool          TEXT NOT NULL,
    shown         TEXT NOT NULL,
    tool_digest   TEXT NOT NULL,
    policy_digest TEXT NOT NULL,
    caller        TEXT NOT NULL,
    session       TEXT,
    rule          TEXT NOT NULL,
    place         TEXT NOT NULL,
    asked_at      TEXT NOT NULL,
    expires_at    TEXT NOT NULL,
    decided_at    TEXT,
    decided_by    TEXT,
    reason        TEXT,
    owner         TEXT CHECK (owner IS NOT NULL OR state NOT IN ('running', 'done', 'failed')),
    started_at    TEXT,
    ended_at      TEXT
) STRICT;
CREATE INDEX ticket_of_caller ON ticket (caller, state, expires_at);
CREATE INDEX ticket_by_expiry ON ticket (state, expires_at);
CREATE INDEX ticket_by_time ON ticket (asked_at);

CREATE TABLE caller_key (
    id         TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    sha256     TEXT NOT NULL UNIQUE,
    tools      TEXT NOT NULL,
    made_at    TEXT NOT NULL,
    revoked_at TEXT
) STRICT;
"""

_SESSIONS: Final = """
CREATE TABLE session (
    digest  TEXT NOT NULL PRIMARY KEY,
    bound   TEXT NOT NULL,
    state   TEXT NOT NULL,
    seen_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_by_time ON session (seen_at);
CREATE INDEX session_of_caller ON session (bound, seen_at);
"""

# The migration to each version. Only append: files of every version are in use.
_STEPS: Final = (_TICKETS_AND_KEYS, _SESSIONS)
_VERSION: Final = len(_STEPS)


def connect(path: Path, draw: Callable[[int], bytes]) -> Connection:
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
    connection = cast("Connection", apsw.Connection(MEMORY if is_memory else str(path)))
    try:
        connection.set_busy_timeout(_BUSY_MS)
        connection.transaction_mode = "IMMEDIATE"
        connection.execute("PRAGMA trusted_schema = OFF")  # a manipulated file must not run code
        version = _version(connection, path)  # before changing a file that may not be a store
        if not is_memory:
            for each in _files_of(path):  # only now: it is a store
                make_private(each)
            _write_ahead(connection)
        if version < _VERSION:
            _migrate(connection, path, draw)
    except BaseException:
        connection.close()
        raise
    return connection


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


def _version(connection: Connection, path: Path) -> int:
    connection.execute("BEGIN")  # a consistent read, while other processes may create the tables
    try:
        return _version_within(connection, path)
    finally:
        connection.execute("ROLLBACK")


def _version_within(connection: Connection, path: Path) -> int:
    """Return the version of the tables, 0 where there are none; call it inside of a transaction.

    Raises `StoreError` where they are not Portbook's, or of an unknown version.
    """
    application: int = connection.execute("PRAGMA application_id").get
    version: int = connection.execute("PRAGMA user_version").get
    if not application and not version and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        return 0
    if application != _APPLICATION:
        raise StoreError(f"{path}: the database of a different program; choose a different [store] path")
    if not 0 < version <= _VERSION:
        raise StoreError(
            f"{path}: made by a newer version of Portbook (its tables have version {version}, "
            f"this one supports {_VERSION}); update Portbook, or choose a different [store] path"
        )
    return version


def _write_ahead(connection: Connection) -> None:
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


def _migrate(connection: Connection, path: Path, draw: Callable[[int], bytes]) -> None:
    with connection:
        version = _version_within(connection, path)  # a different process may have migrated it
        for step in _STEPS[version:]:
            connection.execute(step)
        if not version:
            connection.execute("INSERT INTO secret VALUES ('hmac', ?)", (draw(_HMAC_KEY_BYTES),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
