"""What can be wrong with a store, in sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Final

import apsw

__all__ = ["StoreError", "problem_of", "told"]


class StoreError(OSError):
    """The store cannot be read or written; the message says which one, why, and what to do."""


_DAMAGED: Final = "damaged, or no database; restore it from a backup, or move it away to start anew"
_UNWRITABLE: Final = "cannot be written; check its permissions and those of its folder"

# The first class that fits decides.
_SENTENCES: Final[tuple[tuple[type[apsw.Error], str], ...]] = (
    (apsw.BusyError, "held by another process for too long; try again"),
    (apsw.FullError, "there is no room for it on the disk; make some"),
    (apsw.ReadOnlyError, _UNWRITABLE),
    (apsw.PermissionsError, _UNWRITABLE),
    (apsw.CantOpenError, "cannot be opened; check that its folder exists and can be written"),
    (apsw.NotADBError, _DAMAGED),
    (apsw.CorruptError, _DAMAGED),
    (apsw.IOError, "the disk reports an error; check it, and that it has room"),
)


def problem_of(path: Path, error: apsw.Error) -> StoreError:
    """Return what the library's `error` means for whoever runs the store at `path`."""
    for kind, sentence in _SENTENCES:
        if isinstance(error, kind):
            return StoreError(f"{path}: {sentence}")
    return StoreError(f"{path}: cannot be used: {type(error).__name__}")


@contextlib.contextmanager
def told(path: Path) -> Generator[None]:
    """Turn the library's errors into `StoreError`."""
    try:
        yield
    except apsw.Error as error:
        raise problem_of(path, error) from error
