"""A connection to PostgreSQL on which nothing waits for ever; its address and errors for operators.

`BoundedConnection`: the server ends what takes too long: a statement, a wait for a lock, a transaction that
nobody goes on with. The client ends it too, for a server that does not answer cannot: a proxy may swallow
what is sent and still acknowledge it. Every limit is set inside of a transaction, and no statement is
prepared: a pooler may give each transaction a different connection to the server.

The address and the errors of a database, as messages for operators, hold no values, and never a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from portbook.stores.connection_clock_and_errors import StoreError

__all__ = [
    "COMMIT_BY",
    "BoundedConnection",
    "database_problem",
    "in_postgresql",
    "is_certainly_undone",
    "is_connection_lost",
    "passwords_in",
    "place_of_database",
    "problem_of_address",
]

RV = TypeVar("RV")

# The most that is waited for the server's answer, on either side.
STATEMENT_S: Final = 5.0
_CLIENT_S: Final = STATEMENT_S + 1
_LIMITS: Final = "".join(
    f"; SET LOCAL {name} = '{seconds:g}s'"
    for name, seconds in (
        ("statement_timeout", STATEMENT_S),
        ("lock_timeout", 3),
        ("idle_in_transaction_session_timeout", STATEMENT_S),
    )
)
_READ: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{_LIMITS}".encode()
_WRITE: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE{_LIMITS}".encode()

# What a statement returns whose transaction has to be committed by a time, in microseconds; the earliest one
# counts. It is checked in one message with the COMMIT: between two the network may be gone for a while.
_COMMIT_BY: Final = "coalesce(nullif(current_setting('portbook.commit_by', true), '')::bigint, 9e18::bigint)"
COMMIT_BY: Final = f"set_config('portbook.commit_by', least({_COMMIT_BY}, {{}})::text, true)"
_IN_TIME: Final = f"(extract(epoch FROM clock_timestamp()) * 1000000 < {_COMMIT_BY})::int"
_COMMIT: Final = f"SELECT 1 / {_IN_TIME}; COMMIT".encode()

# For a network that goes away without a word. An address may say otherwise.
_DEFAULTS: Final[Mapping[str, str | int]] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 6000,
    # Of several servers the primary: one that only follows may not know of a key that was revoked.
    "target_session_attrs": "read-write",
    "application_name": "portbook",
    "client_encoding": "utf8",
}

# What is written differently in PostgreSQL, in statements and in the definitions of tables.
_WORDS: Final[Mapping[str, str]] = {
    "?": "%s",
    "BLOB": "BYTEA",
    "INTEGER": "BIGINT",
    "STRICT, WITHOUT ROWID": "",
    "TEXT": 'TEXT COLLATE "C"',
    "unixepoch('subsec')": "extract(epoch FROM clock_timestamp())",
}
_WORD: Final = re.compile(
    "|".join(rf"\b{re.escape(word)}" if word[0].isalpha() else re.escape(word) for word in _WORDS)
)
_WITH_ROWID: Final = re.compile(r"\n\) STRICT;")


@lru_cache(maxsize=512)
def in_postgresql(statement: str) -> bytes:
    """Return a statement that was written for SQLite in the words of PostgreSQL."""
    ruled = _WORD.sub(lambda found: _WORDS[found[0]], statement)
    return _WITH_ROWID.sub(",\n    rowid BIGINT GENERATED ALWAYS AS IDENTITY\n);", ruled).encode()


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """Gives up on a server that does not answer."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return super().wait(gen, interval, _CLIENT_S if timeout is None else timeout)
        except psycopg.OperationalError:
            if timeout is None and self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                self.pgconn.finish()  # an answer that comes late must not be taken for that of a next one
            raise


class DatabaseRows:
    """The rows of a statement."""

    def __init__(self, cursor: psycopg.Cursor[tuple[Any, ...]]) -> None:
        self._cursor = cursor

    @property
    def get(self) -> Any:
        """Return the rows in their simplest form: one row of one column is its value, no row is None."""
        rows: list[Any] = [row[0] if len(row) == 1 else row for row in self]
        if not rows:
            return None
        return rows[0] if len(rows) == 1 else rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, if there is one."""
        return None if self._cursor.description is None else self._cursor.fetchone()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(()) if self._cursor.description is None else iter(self._cursor)

    def close(self) -> None:
        """Drop the rows that were not read."""
        self._cursor.close()


class BoundedConnection:
    """A connection of one thread at a time."""

    def __init__(self, url: str) -> None:
        """Connect to the database at `url`. Raises `psycopg.Error`."""
        given = conninfo_to_dict(url)
        missing = {name: value for name, value in _DEFAULTS.items() if not given.get(name)}
        self.raw = _Bounded.connect(make_conninfo(url, **missing), autocommit=True, prepare_threshold=None)

    @property
    def is_lost(self) -> bool:
        """Return whether it can no longer be used."""
        return self.raw.closed or self.raw.broken

    def execute(self, statements: str, bindings: Sequence[Any] | None = None, /) -> DatabaseRows:
        """Run a statement, with a value for each `?` in it."""
        values = None if bindings is None else [_storable(value) for value in bindings]
        return self.plain(in_postgresql(statements), values)

    def plain(self, statement: bytes, values: Sequence[Any] | None = None) -> DatabaseRows:
        """Run a statement in the words of PostgreSQL."""
        return DatabaseRows(self.raw.execute(statement, values))

    def begin(self, *, is_write: bool) -> None:
        """Begin a transaction: one state of the store to read, or one that others write beside."""
        self.raw.execute(_WRITE if is_write else _READ)

    def commit(self) -> None:
        """Commit the transaction. Raises `psycopg.Error` where it was not, or that is not known."""
        cursor = self.raw.execute(_COMMIT)
        cursor.nextset()
        if cursor.statusmessage != "COMMIT":
            raise psycopg.errors.InFailedSqlTransaction

    def roll_back(self) -> None:
        """Undo the transaction, if there is one. Raises `psycopg.Error`."""
        if not self.is_lost and self.raw.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self.raw.execute("ROLLBACK")

    def close(self) -> None:
        """Close it."""
        self.raw.close()


def _storable(value: Any) -> Any:
    # PostgreSQL keeps no NUL in a text.
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


# Address and errors.

_ENCODE: Final = "cannot be read for certain; percent-encode the password: write %2F for / and %40 for @"
_READ_ONLY: Final = "can only be read; name the primary server"
_AWAY: Final = "cannot be reached; check that PostgreSQL runs, its address and its firewall"

# The answers to COMMIT that say that it was not done: violated constraints and conflicts with others, a
# transaction that had failed before, one that was idle for too long, and one that came after its time.
_UNDONE_CLASSES: Final = ("23", "40")
_COMPLETION_UNKNOWN: Final = "40003"
_UNDONE: Final = ("25P02", "25P03", "22012")

# The first that fits.
_SENTENCES: Final[tuple[tuple[type[psycopg.Error], str], ...]] = (
    (errors.LockNotAvailable, "locked by a different process for too long; retry"),
    (errors.DeadlockDetected, "locked by a different process for too long; retry"),
    (errors.QueryCanceled, "took too long to answer; retry"),
    (errors.ReadOnlySqlTransaction, _READ_ONLY),
    (errors.InsufficientPrivilege, "the role lacks a privilege; have its owner run `portbook store migrate`"),
    (errors.InvalidPassword, "the password or the role is wrong"),
    (errors.InvalidAuthorizationSpecification, "the password or the role is wrong"),
    (errors.InvalidCatalogName, "there is no such database; create it with `createdb`"),
    (errors.DiskFull, "the disk is full; free some space"),
    (errors.TooManyConnections, "has no free connection; raise its max_connections"),
    (errors.AdminShutdown, _AWAY),
    (errors.CannotConnectNow, _AWAY),
)


def problem_of_address(url: str) -> str | None:
    """Return what is wrong with the address of a database, in words that repeat nothing of it."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "is not the address of a PostgreSQL database"
    # A character that ends the password early makes the rest of it a host, a port or the name of a database.
    hosts, ports = str(parts.get("host") or ""), str(parts.get("port") or "0")
    path = url.partition("//")[2].partition("/")[2].partition("?")[0]
    is_misread = "@" in path or any("@" in host[1:] for host in hosts.split(","))
    return _ENCODE if is_misread or not ports.replace(",", "0").isdigit() else None


def place_of_database(url: str) -> str:
    """Return the address of a database without its password, or any other of its parameters.

    Raises `StoreError` where it is not an address.
    """
    if (problem := problem_of_address(url)) is not None:
        raise StoreError(f"store.url: {problem}")
    parts = conninfo_to_dict(url)
    host, port, name = parts.get("host") or "", parts.get("port"), parts.get("dbname") or ""
    return f"postgresql://{host}{f':{port}' if port else ''}/{name}"


def passwords_in(url: str) -> list[str]:
    """Return the passwords that the address of a database holds, as the server sees them."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return []
    return [str(parts[name]) for name in ("password", "sslpassword") if parts.get(name)]


def is_connection_lost(error: Exception) -> bool:
    """Return whether an error leaves open what became of a statement: no answer of the server came.

    A pooler says so by an error of class 08.
    """
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        error.sqlstate is None
        or error.sqlstate.startswith("08")
        or isinstance(error, errors.AdminShutdown | errors.CrashShutdown)
    )


def is_certainly_undone(error: psycopg.Error) -> bool:
    """Return whether an error that answers COMMIT says that the server has undone the transaction."""
    state = error.sqlstate or ""
    return state in _UNDONE or (state[:2] in _UNDONE_CLASSES and state != _COMPLETION_UNKNOWN)


def database_problem(place: str, error: Exception) -> Exception:
    """Return an exception of the library as a `StoreError` about `place`; return all others unchanged."""
    if not isinstance(error, psycopg.Error):
        return error
    for kind, sentence in _SENTENCES:
        if isinstance(error, kind):
            return StoreError(f"{place}: {sentence}")
    if error.sqlstate is None:
        return StoreError(f"{place}: {_sentence_of(error)}")
    return StoreError(f"{place}: cannot be used: {type(error).__name__} ({error.sqlstate})")


def _sentence_of(error: psycopg.Error) -> str:
    # While a connection is made, the library gives no code, but the server's own words.
    said = str(error)
    if "authentication failed" in said or "no password supplied" in said:
        return "the password or the role is wrong"
    if "read-only" in said:
        return _READ_ONLY
    if "does not exist" in said:
        return "there is no such database or role"
    return _AWAY
