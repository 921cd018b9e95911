"""`StoreError` and `BadLock`: the errors of SQLite, and of the lock file, as messages for operators.

The database library is not imported here at module level, nor by `Store`: it is not needed where there is no
file, which is the case at most starts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Final

__all__ = ["BadLock", "StoreError", "UnknownOutcome", "as_store_error", "problem_of"]


class StoreError(OSError):
    """The store cannot be read or written; the message names the file, the reason and the fix."""


class UnknownOutcome(StoreError):
    """Something was written or was not: the connection ended before the database could say which."""


class BadLock(ValueError):
    """A lock file that cannot be used; the message has the line and says what to do."""


_DAMAGED: Final = "damaged, or not a database; restore it from a backup, or move it away"
_UNWRITABLE: Final = "cannot be written; check its permissions and those of its folder"

# By the names of the library's exceptions.
_SENTENCES: Final = {
    "BusyError": "locked by a different process for too long; retry",
    "FullError": "the disk is full; free some space",
    "ReadOnlyError": _UNWRITABLE,
    "PermissionsError": _UNWRITABLE,
    "CantOpenError": "cannot be opened; check that its folder exists and can be written",
    "NotADBError": _DAMAGED,
    "CorruptError": _DAMAGED,
    "IOError": "the disk reports an error; check the disk and its free space",
}


def problem_of(path: Path, error: Exception) -> Exception:
    """Return an exception of the library as a `StoreError` about `path`; return all others unchanged."""
    import apsw

    if not isinstance(error, apsw.Error):
        return error
    name = type(error).__name__
    return StoreError(f"{path}: {_SENTENCES.get(name, f'cannot be used: {name}')}")


@contextlib.contextmanager
def as_store_error(path: Path) -> Generator[None]:
    """Convert the library's exceptions to `StoreError`."""
    try:
        yield
    except Exception as error:
        problem = problem_of(path, error)
        if problem is error:
            raise
        raise problem from error
