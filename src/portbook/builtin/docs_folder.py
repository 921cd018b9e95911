"""Finds and reads the text files of a folder, without ever leaving it.

Only regular files are opened. Symbolic links are not followed, not even one that replaces a file or a folder
during the walk: each step is opened relative to its open parent folder. The order is always the same. Files
that cannot be read, or no longer exist, are left out without an error.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, NamedTuple

__all__ = ["MARKDOWN", "MAX_FILES", "MAX_FILE_BYTES", "SUFFIXES", "Stamp", "TextFile", "text_files"]

# The files that the search of documents reads.

MARKDOWN: Final = (".md", ".markdown")

SUFFIXES: Final = (*MARKDOWN, ".txt", ".rst")
"""The supported file extensions, in lower case."""

# Documentation pages are far smaller. A larger file is a log or a data set, not for an index in memory.
MAX_FILE_BYTES: Final = 1 << 20

# Checking this many takes about a tenth of a second, which a search may have to wait for.
MAX_FILES: Final = 10_000

# The walk keeps one descriptor open per level; documentation is never nested this deep.
_MAX_DEPTH: Final = 64

# Opening must not block if the file was replaced by a named pipe without a writer.
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

# A name that is not UTF-8 reaches Python with lone surrogates, which JSON cannot hold.
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Stamp(NamedTuple):
    """Attributes of a file that change when it is written to."""

    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that was found. It can be read until the walk continues."""

    path: str
    """Relative to the folder, with slashes."""
    stamp: Stamp
    name: str
    directory: int
    """The descriptor of the file's folder."""

    def read(self) -> str | None:
        """Return the text, with U+FFFD for bytes that are not UTF-8, or None where it cannot be read."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self.name, _OPEN_FLAGS, dir_fd=self.directory)
            try:
                if _is_wanted(os.fstat(descriptor)):
                    with open(descriptor, "rb", closefd=False) as file:
                        return file.read(MAX_FILE_BYTES).decode("utf-8-sig", "replace")
            finally:
                os.close(descriptor)
        return None


def text_files(folder: Path) -> Iterator[TextFile]:
    """Yield the visible text files below `folder`, which may be a link; none where it is missing."""
    left = MAX_FILES
    # Python before 3.13 raises RuntimeError for a link to itself.
    with contextlib.suppress(OSError, RuntimeError):
        top = folder.resolve(strict=True)
        for where, folders, names, directory in os.fwalk(top):
            below = PurePath(where).relative_to(top)
            folders[:] = sorted(filter(_is_visible, folders)) if len(below.parts) < _MAX_DEPTH else []
            prefix = f"{below.as_posix()}/" if below.parts else ""
            for name in sorted(filter(_is_visible, names)):
                if not (file := _look(prefix, name, directory)):
                    continue
                yield file
                left -= 1
                if not left:
                    return


def _look(prefix: str, name: str, directory: int) -> TextFile | None:
    if name.lower().endswith(SUFFIXES):
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if _is_wanted(status):
                return TextFile(prefix + name, Stamp(status.st_mtime_ns, status.st_size), name, directory)
    return None


def _is_visible(name: str) -> bool:
    return not name.startswith(".") and not _SURROGATE.search(name)


def _is_wanted(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES
