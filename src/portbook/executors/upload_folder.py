"""`UploadFolder`: reads files that callers name by their paths, in the one folder that the operator set.

Only regular files in that folder or below are read. No symbolic link is followed at any step, and opening
never waits: a named pipe is refused like every other special file.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from portbook.apis.bodies.body_writer import NamedFile
from portbook.apis.parameter_styles import unsendable

__all__ = ["UploadFolder"]

_STEP: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_LAST: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class UploadFolder:
    """The files of one gateway's folder, up to a size."""

    __slots__ = ("_folder", "_max_bytes")

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def read_all(self, files: list[NamedFile]) -> dict[str, bytes]:
        """Return the data of `files` by their paths; together they are within the size.

        Raises `Refused` where one of them cannot be sent.
        """
        found: dict[str, bytes] = {}
        left = self._max_bytes
        for file in files:
            if file.path not in found:
                found[file.path] = self._read(file, left)
            left -= len(found[file.path])  # it is sent as often as it is named
            if left < 0:
                raise unsendable(file.place, self._too_large)
        return found

    @property
    def _too_large(self) -> str:
        return f"is larger than {self._max_bytes} bytes, the limit of one call"

    def _read(self, file: NamedFile, max_bytes: int) -> bytes:
        *steps, last = file.path.split("/")
        if not last or any(step in ("", ".", "..") or "\0" in step for step in (*steps, last)):
            raise unsendable(file.place, "must be a path in the folder for files, such as reports/may.pdf")
        try:
            with ExitStack() as opened:
                folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
                opened.callback(os.close, folder)
                for step in steps:
                    folder = os.open(step, _STEP, dir_fd=folder)
                    opened.callback(os.close, folder)
                found = os.open(last, _LAST, dir_fd=folder)
                opened.callback(os.close, found)
                if not stat.S_ISREG(os.fstat(found).st_mode):
                    raise unsendable(file.place, "is not a regular file")
                with os.fdopen(found, "rb", closefd=False) as reader:
                    data = reader.read(max_bytes + 1)
        except OSError:
            raise unsendable(file.place, "is not a file that can be read in the folder for files") from None
        if len(data) > max_bytes:
            raise unsendable(file.place, self._too_large)
        return data
