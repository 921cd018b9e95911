"""The tables of the store: creates and migrates them, and rejects tables that are not the store's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from portbook.stores.connection_types import Connection
from portbook.stores.errors import StoreError

__all__ = ["TABLES_VERSION", "migrate", "version_of_tables"]

# Marks the file as Portbook's in its header: "pbk1".
_APPLICATION: Final = 0x70626B31

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

# What each process says of the MCP servers behind it, and which of them an operator wants restarted.
_UPSTREAMS: Final = """
CREATE TABLE upstream (
    process TEXT NOT NULL,
    alias   TEXT NOT NULL,
    status  TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    PRIMARY KEY (process, alias)
) STRICT, WITHOUT ROWID;
CREATE INDEX upstream_by_time ON upstream (seen_at);
CREATE TABLE upstream_restart (
    alias    TEXT NOT NULL PRIMARY KEY,
    asked_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

# What each MCP server offered when it was last asked.
_OBSERVATIONS: Final = """
CREATE TABLE observation (
    server      TEXT NOT NULL PRIMARY KEY,
    definitions TEXT NOT NULL,
    seen_at     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

# What is known of the records of every writer: their segments, and the checkpoints that cover them.
_CHECKPOINTS: Final = """
CREATE TABLE audit_checkpoint (
    number    INTEGER NOT NULL PRIMARY KEY,
    body      TEXT NOT NULL,
    hash      TEXT NOT NULL,
    key_id    TEXT,
    signature TEXT
) STRICT;
CREATE TABLE audit_segment (
    log        TEXT NOT NULL,
    stream     TEXT NOT NULL,
    file       TEXT NOT NULL,
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    head       TEXT NOT NULL,
    records    TEXT,
    checkpoint INTEGER,
    is_pruned  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (log, stream, file, first)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_segment_by_checkpoint ON audit_segment (checkpoint);
"""

# What processes that share a store tell each other, and what any of them may be asked for.
_NODES: Final = """
CREATE TABLE mail_counter (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
);
CREATE TABLE mail (
    sequence INTEGER NOT NULL PRIMARY KEY,
    node     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    session  TEXT NOT NULL,
    body     TEXT NOT NULL,
    made_at  TEXT NOT NULL
);
CREATE INDEX mail_by_time ON mail (made_at);
CREATE TABLE stream (
    session    TEXT NOT NULL,
    name       TEXT NOT NULL,
    node       TEXT NOT NULL,
    request    TEXT NOT NULL,
    reader     TEXT NOT NULL,
    position   INTEGER NOT NULL,
    changed_at TEXT NOT NULL,
    ended_at   TEXT,
    PRIMARY KEY (session, name)
);
CREATE INDEX stream_by_time ON stream (changed_at);
CREATE TABLE stream_event (
    session  TEXT NOT NULL,
    stream   TEXT NOT NULL,
    position INTEGER NOT NULL,
    message  TEXT NOT NULL,
    PRIMARY KEY (session, stream, position)
);
CREATE TABLE task (
    id         TEXT NOT NULL PRIMARY KEY,
    bound      TEXT NOT NULL,
    node       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    is_over    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    made_at    TEXT NOT NULL,
    changed_at TEXT NOT NULL
);
CREATE INDEX task_of_caller ON task (bound, made_at);
CREATE INDEX task_by_time ON task (changed_at);
"""

# The migration to each version. Only append: files of every version are in use.
_STEPS: Final = (_TICKETS_AND_KEYS, _SESSIONS, _UPSTREAMS, _OBSERVATIONS, _CHECKPOINTS, _NODES)
TABLES_VERSION: Final = len(_STEPS)


def version_of_tables(connection: Connection, path: Path) -> int:
    """Return the version of the tables, 0 where there are none.

    Raises `StoreError` where they are not Portbook's, or of an unknown version.
    """
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
    if not 0 < version <= TABLES_VERSION:
        raise StoreError(
            f"{path}: made by a newer version of Portbook (its tables have version {version}, "
            f"this one supports {TABLES_VERSION}); update Portbook, or choose a different [store] path"
        )
    return version


def migrate(connection: Connection, path: Path, draw: Callable[[int], bytes]) -> None:
    """Bring the tables to the newest version; `draw` returns random bytes for the key of a new store."""
    with connection:
        version = _version_within(connection, path)  # a different process may have migrated it
        for step in _STEPS[version:]:
            connection.execute(step)
        if not version:
            connection.execute("INSERT INTO secret VALUES ('hmac', ?)", (draw(_HMAC_KEY_BYTES),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {TABLES_VERSION}")
