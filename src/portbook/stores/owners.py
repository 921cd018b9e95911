"""Which process runs a call, and whether it still lives.

A process number says little: it is given away again, and means nothing in another container. So each process
that redeems approvals holds a lock on a file of its own beside the store for as long as it lives, and the
system lets go of it when the process ends, however that happens. Who can take the lock knows that its holder
is gone; and gone it stays, for a name is never used twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from portbook.stores.errors import StoreError

__all__ = ["Owner", "folder_of"]


def folder_of(store: Path) -> Path:
    """Return the folder for the locks of those who use the store at this path."""
    return store.with_name(f"{store.name}-owners")


class Owner:
    """This process as the owner of what it redeems, and the one who knows which others live."""

    def __init__(self, folder: Path | None, name: str) -> None:
        """Take `name`, which nobody has had before; `folder` is None where no other process can look."""
        self.name = name
        self._folder = folder
        self._lock: int | None = None

    def hold(self) -> None:
        """Show that this process lives; does nothing the second time.

        Raises `StoreError` where the lock cannot be made.
        """
        if self._lock is not None or self._folder is None:
            return
        try:
            self._lock = _locked(self._folder, self.name)
            _sweep(self._folder)
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot be written: {error.strerror}") from error

    def lives(self, name: str | None) -> bool:
        """Return whether the process with this name lives."""
        if name == self.name:
            return True
        if name is None or self._folder is None or "/" in name:
            return False
        try:
            file = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:  # cannot be told now, and nobody is declared dead on a guess
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def release(self) -> None:
        """Let go, in the end: what is still running then has no owner any more."""
        if self._lock is not None and self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / self.name).unlink()
            with contextlib.suppress(OSError):  # others' locks are still in it
                self._folder.rmdir()
            os.close(self._lock)
            self._lock = None


def _locked(folder: Path, name: str) -> int:
    """Return a lock that everybody finds under `name`."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            lock = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # the last one who left took the folder along
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_same(lock, folder / name):
            return lock
        os.close(lock)  # swept away between the making and the locking


def _is_same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove the files of those who died."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(file)
