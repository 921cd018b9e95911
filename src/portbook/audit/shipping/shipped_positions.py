"""`ShippedPositions`: how far each file of records was shipped to one receiver; survives a kill.

A line is appended for each batch that arrived; of several lines of one file the last counts. The process that
holds the lock ships for all that write to the same folder. When it ends, the next one goes on.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

__all__ = ["ShippedPositions"]

# The file is written anew at this size: half a day of one batch in a second.
_MAX_BYTES: Final = 1 << 22


class ShippedPositions:
    """The positions of one receiver. The first use tries to take the lock."""

    def __init__(self, folder: Path, receiver: str) -> None:
        """Keep the positions in `folder`; `receiver` is a name for files."""
        self._folder = folder
        self._path = folder / f"{receiver}.positions"
        self._lock_path = folder / f"{receiver}.lock"
        self._lock: int | None = None
        self._file: int | None = None
        self._offsets: dict[str, int] = {}

    def hold(self) -> bool:
        """Return whether this process ships; another one may.

        Raises `OSError` where the folder cannot be written.
        """
        if self._lock is not None:
            return True
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        self._offsets = _read(self._path)
        self._rewrite()
        return True

    def of(self, name: str) -> int:
        """Return how many bytes of a file were shipped."""
        return self._offsets.get(name, 0)

    def note(self, name: str, offset: int) -> None:
        """Write down how far a file was shipped.

        Raises `OSError` where that cannot be written: it is then shipped again.
        """
        self._offsets[name] = offset
        if self._file is not None:
            os.write(self._file, _line(name, offset))
            if os.fstat(self._file).st_size > _MAX_BYTES:
                self._rewrite()

    def forget_all_but(self, names: Collection[str]) -> None:
        """Forget files that are gone."""
        self._offsets = {name: offset for name, offset in self._offsets.items() if name in names}

    def close(self) -> None:
        """Release the lock."""
        for each in (self._file, self._lock):
            if each is not None:
                os.close(each)
        self._file = self._lock = None

    def _rewrite(self) -> None:
        draft = self._path.with_suffix(".draft")
        file = os.open(draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(file, b"".join(_line(name, offset) for name, offset in self._offsets.items()))
        draft.replace(self._path)
        if self._file is not None:
            os.close(self._file)
        self._file = file


def _line(name: str, offset: int) -> bytes:
    return f"{offset} {name}\n".encode()


def _read(path: Path) -> dict[str, int]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    found: dict[str, int] = {}
    for line in lines[:-1]:  # what follows the last line break was cut off by a kill
        offset, _, name = line.partition(b" ")
        if offset.isdigit():
            found[name.decode(errors="replace")] = int(offset)
    return found
