"""The backup of a file that an adoption changes: its name, and how it is written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["backup_path", "write_backup"]


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
