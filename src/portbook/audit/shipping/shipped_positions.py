"""`ShippedPositions`: how far each file of records was shipped to one receiver; survives a kill.

A line is appended for each batch that arrived; of several lines of one file the last counts. The process that
holds the lock ships for all that write to the same folder. When it ends, the next one goes on.
"""

from __future__ import annotations

import fcntl
import os
import zlib
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
        self._is_torn = False
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
        try:
            self._offsets = _read(self._path)
            self._rewrite()
        except BaseException:
            self.close()  # else the next attempt would go on without a file
            raise
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
            line = _line(name, offset)
            # After a line that was cut off, the next one would be read as a part of it.
            self._is_torn = self._is_torn or os.write(self._file, line) != len(line)
            if self._is_torn or os.fstat(self._file).st_size > _MAX_BYTES:
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
        try:
            _write(file, b"".join(_line(name, offset) for name, offset in self._offsets.items()))
            draft.replace(self._path)
        except BaseException:
            os.close(file)
            raise
        if self._file is not None:
            os.close(self._file)
        self._file, self._is_torn = file, False


def _write(file: int, data: bytes) -> None:
    """Write all of `data`. Raises `OSError` where it cannot be, as on a full disk."""
    while data:
        data = data[os.write(file, data) :]


def _line(name: str, offset: int) -> bytes:
    said = f"{offset} {name}".encode()
    return b"%08x %s\n" % (zlib.crc32(said), said)


def _read(path: Path) -> dict[str, int]:
    """Return the positions in a file; a line that is not as it was written counts for nothing."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    found: dict[str, int] = {}
    for line in lines[:-1]:  # what follows the last line break was cut off by a kill
        _, _, said = line.partition(b" ")
        offset, _, name = said.partition(b" ")
        if offset.isdigit() and line == _line(name.decode(errors="replace"), int(offset))[:-1]:
            found[name.decode()] = int(offset)
    return found
