"""The tables of the store: creates and migrates them, and rejects tables that are not the store's.

Forward only, one version at a time. During a rolling upgrade the processes of the version before are still
running, so a Portbook works with tables that are one version newer than its own. That binds every step:

- Append a constant to `STEPS`; never change one that was released.
- Write SQLite's words. For PostgreSQL a few are replaced (`stores/postgres/`): `INTEGER` by BIGINT, `BLOB` by
  BYTEA, `TEXT` by TEXT that is compared byte by byte. A table that is `STRICT` alone has a column `rowid`, as
  SQLite's have; one that is `STRICT, WITHOUT ROWID` has none.
- A new column has a default, and no column is renamed, removed or given a new meaning: the version before
  neither knows it nor fills it.
- Statements name their columns (`INSERT INTO t (a, b) VALUES …`), because the next step may add some.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from portbook.stores.connection_clock_and_errors import FileConnection, StoreError

__all__ = ["HMAC_KEY_BYTES", "STEPS", "TABLES_VERSION", "is_usable", "migrate", "newer", "version_of_tables"]

# Marks the file as Portbook's in its header: "pbk1".
_APPLICATION: Final = 0x70626B31

HMAC_KEY_BYTES: Final = 32

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

# The tokens of each caller: when its bucket is full again, in microseconds since 1970.
_RATES: Final = """
CREATE TABLE rate_bucket (
    caller  TEXT NOT NULL PRIMARY KEY,
    full_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

# Until when each owner of running calls is alive, where a database knows no locks of processes: microseconds
# since 1970 by the clock of the database. And how often the store was restored from a backup.
_LEASES: Final = """
CREATE TABLE lease (
    owner      TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE restoration (
    epoch       INTEGER NOT NULL PRIMARY KEY,
    restored_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

# The records that processes have shipped here.
_RECORDS: Final = """
CREATE TABLE audit_record (
    host   TEXT NOT NULL,
    stream TEXT NOT NULL,
    file   TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    hash   TEXT NOT NULL,
    line   TEXT NOT NULL,
    PRIMARY KEY (stream, file, seq, hash)
) STRICT, WITHOUT ROWID;
"""

# What processes that share a store tell each other, and what any of them may be asked for.
_NODES: Final = """
CREATE TABLE mail_counter (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE mail (
    sequence INTEGER NOT NULL PRIMARY KEY,
    node     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    session  TEXT NOT NULL,
    body     TEXT NOT NULL,
    made_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
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
) STRICT, WITHOUT ROWID;
CREATE INDEX stream_by_time ON stream (changed_at);
CREATE TABLE stream_event (
    session  TEXT NOT NULL,
    stream   TEXT NOT NULL,
    position INTEGER NOT NULL,
    message  TEXT NOT NULL,
    PRIMARY KEY (session, stream, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE task (
    id         TEXT NOT NULL PRIMARY KEY,
    bound      TEXT NOT NULL,
    node       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    is_over    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    made_at    TEXT NOT NULL,
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX task_of_caller ON task (bound, made_at);
CREATE INDEX task_by_time ON task (changed_at);
"""

# What the last transaction of each writer left, in a database that may lose the answer to COMMIT.
_COMMIT_PROOFS: Final = """
CREATE TABLE commit_proof (
    writer     TEXT NOT NULL PRIMARY KEY,
    value      TEXT NOT NULL,
    written_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

# The migration to each version. Only append: files of every version are in use.
STEPS: Final = (
    _TICKETS_AND_KEYS,
    _SESSIONS,
    _UPSTREAMS,
    _OBSERVATIONS,
    _CHECKPOINTS,
    _RATES,
    _LEASES,
    _RECORDS,
    _NODES,
    _COMMIT_PROOFS,
)
TABLES_VERSION: Final = len(STEPS)

# How many versions newer than its own the tables may be that a Portbook uses.
_AHEAD: Final = 1


def is_usable(version: int) -> bool:
    """Return whether this Portbook can use tables of this version, after it has migrated older ones."""
    return 0 < version <= TABLES_VERSION + _AHEAD


def newer(place: str, version: int) -> StoreError:
    """Return the error about tables that are too new."""
    return StoreError(
        f"{place}: made by a newer version of Portbook (its tables have version {version}, "
        f"this one supports {TABLES_VERSION + _AHEAD}); update Portbook, or choose a different store"
    )


def version_of_tables(connection: FileConnection, path: Path) -> int:
    """Return the version of the tables, 0 where there are none.

    Raises `StoreError` where they are not Portbook's, or of an unknown version.
    """
    connection.execute("BEGIN")  # a consistent read, while other processes may create the tables
    try:
        return _version_within(connection, path)
    finally:
        connection.execute("ROLLBACK")


def _version_within(connection: FileConnection, path: Path) -> int:
    """Return the version of the tables, 0 where there are none; call it inside of a transaction.

    Raises `StoreError` where they are not Portbook's, or of an unknown version.
    """
    application: int = connection.execute("PRAGMA application_id").get
    version: int = connection.execute("PRAGMA user_version").get
    if not application and not version and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        return 0
    if application != _APPLICATION:
        raise StoreError(f"{path}: the database of a different program; choose a different [store] path")
    if not is_usable(version):
        raise newer(str(path), version)
    return version


def migrate(connection: FileConnection, path: Path, draw: Callable[[int], bytes]) -> None:
    """Bring the tables to the newest version; `draw` returns random bytes for the key of a new store."""
    with connection:
        version = _version_within(connection, path)  # a different process may have migrated it
        for step in STEPS[version:]:
            connection.execute(step)
        if not version:
            connection.execute("INSERT INTO secret VALUES ('hmac', ?)", (draw(HMAC_KEY_BYTES),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {max(version, TABLES_VERSION)}")
