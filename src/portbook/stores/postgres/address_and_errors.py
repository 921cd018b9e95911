"""The address and the errors of a database as messages for operators: no values, and never a password."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from portbook.stores.store_errors import StoreError

__all__ = [
    "database_problem",
    "is_certainly_undone",
    "is_connection_lost",
    "passwords_in",
    "place_of_database",
    "problem_of_address",
]

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
