"""What can be wrong with a store, in sentences.

The library is not imported here, nor by anything that only stands for a store: where there is no file it is
not needed, and most starts have none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Final

__all__ = ["StoreError", "problem_of", "told"]


class StoreError(OSError):
    """The store cannot be read or written; the message says which one, why, and what to do."""


_DAMAGED: Final = "damaged, or not a database; restore it from a backup, or move it away"
_UNWRITABLE: Final = "cannot be written; check its permissions and those of its folder"

# By the names of the library's errors.
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
    """Return what an error of the library means for whoever runs the store at `path`; others as they are."""
    import apsw

    if not isinstance(error, apsw.Error):
        return error
    name = type(error).__name__
    return StoreError(f"{path}: {_SENTENCES.get(name, f'cannot be used: {name}')}")


@contextlib.contextmanager
def told(path: Path) -> Generator[None]:
    """Turn the library's errors into `StoreError`."""
    try:
        yield
    except Exception as error:
        problem = problem_of(path, error)
        if problem is error:
            raise
        raise problem from error
