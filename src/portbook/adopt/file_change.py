"""`FileChange`: one file as it was and as it is to be; made and taken back in steps that a kill cannot spoil.

A file is replaced by a rename within its folder, so that a reader sees the old one or the new one. What was
there before is kept beside it until it is given back. Links are followed: the file that they lead to is
replaced.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "ChangedMeanwhile",
    "FileChange",
    "backup_path",
    "check_unchanged",
    "digest_of",
    "draft_prefix",
    "folder_turn",
    "make",
    "read_if_there",
    "write_backup",
    "write_file",
]


class ChangedMeanwhile(Exception):
    """A file that is not what it was when the change was planned."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One change."""

    path: Path
    before: bytes | None
    """None where there is no such file yet."""
    after: bytes
    mode: int
    """The permissions of a new file; one that exists keeps its own."""
    backup: Path | None = None
    """Where the old file is kept; None where there is none."""


def digest_of(data: bytes | None) -> str | None:
    """Return what tells one state of a file from another."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def read_if_there(path: Path) -> bytes | None:
    """Return a file's bytes, or None where there is none. Raises `OSError` where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def make(change: FileChange) -> None:
    """Make a change.

    Raises `ChangedMeanwhile` where the file is not what it was, `OSError` where it cannot be written.
    """
    if change.backup is not None and change.before is not None:
        write_backup(change.path, change.backup, change.before)
    try:
        check_unchanged(change)
        write_file(change.path, change.after, change.mode)
    except (ChangedMeanwhile, OSError):
        if change.backup is not None and read_if_there(change.path) != change.after:
            change.backup.unlink(missing_ok=True)
        raise


def check_unchanged(change: FileChange) -> None:
    """Raise `ChangedMeanwhile` where the file is not what it was when the change was planned."""
    if read_if_there(change.path) != change.before:
        raise ChangedMeanwhile(f"{change.path} has changed meanwhile; run the command again")


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Replace or create a file; one that exists keeps its permissions and its owner."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f"{draft_prefix(path)}")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            _permit(descriptor, path, mode)
            file.flush()
            os.fsync(descriptor)
        os.replace(draft, path)  # noqa: PTH105 - tests count the steps of this module by their names in os
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def draft_prefix(path: Path) -> str:
    """Return how the names of drafts of a file begin; a kill leaves one behind."""
    return f".{path.name}.portbook-"


def _permit(descriptor: int, path: Path, mode: int) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, mode)
        return
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, found.st_uid, found.st_gid)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# The backup of a file that an adoption changes: its name, and how it is written.


def backup_path(path: Path, stamp: str) -> Path:
    """Return where the backup of a file goes; `stamp` is the time of the adoption."""
    return path.with_name(f"{path.name}.bak.{stamp}")


def write_backup(path: Path, backup: Path, data: bytes) -> None:
    """Write a file's bytes beside it, in a file that nobody had before."""
    mode = stat.S_IMODE(path.stat().st_mode)
    descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
    except OSError:
        backup.unlink()
        raise


# The turn of one process in a folder: adoptions and their undoing come one after the other.


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
