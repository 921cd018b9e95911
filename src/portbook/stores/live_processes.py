"""`Owner`: which process runs a call, and whether that process is still alive.

A process id is not enough: it is reused, and means nothing in a different container. So each process that
redeems approvals holds a lock on its own file beside the store. The system releases the lock when the process
ends, for whatever reason. A process that can take the lock knows that its holder has ended. Names are never
reused, so it stays ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.sqlite_connection import make_private

__all__ = ["Owner", "folder_of"]


def folder_of(store: Path) -> Path:
    """Return the folder for the locks of the processes that use the store at this path."""
    return store.with_name(f"{store.name}-owners")


class Owner:
    """This process as the owner of the calls it runs; also tells whether other owners are alive."""

    def __init__(self, folder: Path | None, name: str) -> None:
        """Use the unique `name`; `folder` is None where no other process can use the store."""
        self.name = name
        self._folder = folder
        self._lock: int | None = None

    def hold(self) -> float:
        """Take the lock of this process; do nothing if it is held already.

        Raises `StoreError` where the lock cannot be created.
        """
        if self._lock is not None or self._folder is None:
            return 0.0
        try:
            self._lock = _locked(self._folder, self.name)
            _sweep(self._folder)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot be written: {error.strerror}") from error
        return 0.0

    def claim(self, connection: Connection) -> str:
        """Return the name of this process, whose lock is held."""
        return self.name

    def confirm(self, name: str, since: float) -> None:
        """Do nothing: a lock is held until its process ends."""

    def may_start(self, name: str) -> bool:
        """Return True: as long as this process runs, its lock is held."""
        return True

    def keeps(self, connection: Connection, name: str) -> bool:
        """Return whether `name` is that of this process."""
        return name == self.name

    def abandon(self, name: str, is_used: Callable[[], bool]) -> None:
        """Do nothing: what was written to a file is known."""

    def lives(self, name: str | None, connection: Connection | None = None) -> bool:
        """Return whether the process with this name is alive."""
        if name == self.name:
            return True
        if name is None or self._folder is None or "/" in name:
            return False
        try:
            make_private(self._folder)
            file = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:  # unknown, so assume that it is alive
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def release(self) -> None:
        """Release the lock at shutdown: calls that are still running then have no owner."""
        if self._lock is not None and self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / self.name).unlink()
            with contextlib.suppress(OSError):  # it still has the locks of other processes
                self._folder.rmdir()
            os.close(self._lock)
            self._lock = None


def _locked(folder: Path, name: str) -> int:
    """Return a lock on the file that other processes find under `name`."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            make_private(folder)  # who can write there can pretend that a process lives
            lock = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # the last process to leave removed the folder
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_same(lock, folder / name):
            return lock
        os.close(lock)  # the file was swept between creating and locking it


def _is_same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove the files of processes that have ended."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(file)
