"""The turn of one process in a folder: adoptions and their undoing come one after the other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["folder_turn"]


@contextmanager
def folder_turn(folder: Path) -> Generator[None]:
    """Wait until no other process has its turn in a folder; the folder is created where there is none.

    The folder itself is locked, so that no file of the lock is left behind.
    """
    descriptor = _locked(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(folder: Path) -> int:
    """Return a descriptor of the folder that holds its lock."""
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # undoing has just removed it
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the process before removed the folder at the end of its turn
