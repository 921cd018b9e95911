"""The JSON files of a folder, read once, without ever leaving it.

Only regular files are read, up to a size. A symbolic link is followed where it ends inside the folder, as
mounted configuration has them; every step on the way is then taken from an open folder to a name in it, so
that nothing that takes a file's place in the meantime can lead elsewhere. The order is always the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final, NamedTuple

__all__ = [
    "MAX_FILES",
    "MAX_FILE_BYTES",
    "MAX_TOTAL_BYTES",
    "STDIN",
    "CannotRead",
    "Found",
    "Seen",
    "json_files",
    "read_below",
    "read_file",
    "read_named",
    "read_walked",
    "walk",
]

# Twenty times the largest schema of MCP. What is larger is data, not a schema or an example of one.
MAX_FILE_BYTES: Final = 4 * 1024 * 1024

# What a library may hold in memory, and how many files it may be in.
MAX_TOTAL_BYTES: Final = 256 * 1024 * 1024
MAX_FILES: Final = 10_000

# What people write for standard input in the place of a file.
STDIN: Final = "-"

# A pipe must not make us wait for somebody to write to it, nor a terminal become ours.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# A name that is not UTF-8 reaches Python with lone surrogates, which no JSON can hold.
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class CannotRead(Exception):
    """A file that is not read; the message says why, and not where it is."""


class Found(NamedTuple):
    """A file by its path below the folder, with slashes; its bytes, or why there are none."""

    path: str
    data: bytes
    problem: str = ""


class Seen(NamedTuple):
    """A file, or a folder that cannot be looked into, by its path below the folder that was looked at."""

    path: str
    problem: str = ""


def json_files(folder: Path, *, is_deep: bool = True) -> Iterator[Found]:
    """Yield the visible files in `folder`, and below it, whose names end in `.json`, ordered by path.

    Raises `CannotRead` where the folder itself cannot be opened.
    """
    try:
        top = folder.resolve(strict=True)
        root = os.open(top, _FOLDER)
    except (OSError, RuntimeError) as error:  # before 3.13, a link that leads to itself is a RuntimeError
        raise CannotRead(
            f"cannot be read: {getattr(error, 'strerror', None) or 'a circle of links'}"
        ) from None
    total = 0
    try:
        for count, (path, problem) in enumerate(walk(top, is_deep=is_deep), 1):
            if count > MAX_FILES:
                yield Found(
                    path, b"", f"the folder has more than {MAX_FILES} files; this and the rest are left out"
                )
                return
            if problem or _SURROGATE.search(path):
                yield Found(path, b"", problem or "its name is not UTF-8")
                continue
            try:
                data = _read_below(root, top, path)
            except CannotRead as reason:
                yield Found(path, b"", str(reason))
                continue
            total += len(data)
            if total > MAX_TOTAL_BYTES:
                yield Found(
                    path,
                    b"",
                    f"the folder has more than {MAX_TOTAL_BYTES} bytes; this and the rest are left out",
                )
                return
            yield Found(path, data)
    finally:
        os.close(root)


def read_file(path: str | Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of one file that somebody named; links are followed wherever they lead.

    Raises `CannotRead` where it is missing, no regular file, or longer than `limit`.
    """
    return _read(_open(path, _FLAGS), limit)


def read_named(path: str, limit: int) -> bytes:
    """Return the bytes of what a person named on a command line, which may be a pipe, or `-`.

    Raises `CannotRead` where it is missing, a folder, or longer than `limit`.
    """
    descriptor = 0 if path == STDIN else _open(path, _FLAGS & ~os.O_NONBLOCK)
    try:
        with contextlib.ExitStack() as opened:
            if path != STDIN:
                opened.callback(os.close, descriptor)
            file = opened.enter_context(open(descriptor, "rb", closefd=False))
            return _within(file.read(limit + 1), limit)
    except OSError as error:
        raise CannotRead(f"cannot be read: {error.strerror}") from None


def read_walked(path: str, folder: str, limit: int) -> bytes:
    """Return the bytes of a file that was found by looking through `folder`, which no link may lead out of.

    Raises `CannotRead` where that is so, or it is no regular file, or longer than `limit`.
    """
    try:
        descriptor = os.open(path, _FLAGS | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise CannotRead(f"cannot be read: {error.strerror}") from None
        return read_below(Path(folder), os.path.relpath(path, folder), limit)
    return _read(descriptor, limit)


def read_below(folder: Path, path: str, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of the file at `path` below `folder`, which no link may lead out of.

    Raises `CannotRead` where that is so, or it is missing, no regular file, or longer than `limit`.
    """
    try:
        top = folder.resolve(strict=True)
        root = os.open(top, _FOLDER)
    except (OSError, RuntimeError):
        raise CannotRead("cannot be read: its folder cannot be") from None
    try:
        return _read_below(root, top, path, limit)
    finally:
        os.close(root)


def walk(top: str | Path, *, is_deep: bool = True) -> Iterator[Seen]:
    """Yield the visible files in `top`, and below it, whose names end in `.json`; no link is followed.

    In the order of their paths, folder by folder; a folder that cannot be looked into is yielded too.
    """
    problems: list[OSError] = []
    for where, folders, names in os.walk(top, onerror=problems.append):
        folders[:] = sorted(filter(_is_visible, folders)) if is_deep else []
        below = PurePath(where).relative_to(top)
        prefix = "" if below == PurePath() else f"{below.as_posix()}/"
        for name in sorted(filter(_is_visible, names)):
            if name.endswith(".json"):
                yield Seen(prefix + name)
        yield from _unlisted(problems, top)
    yield from _unlisted(problems, top)


def _unlisted(problems: list[OSError], top: str | Path) -> Iterator[Seen]:
    for error in problems:
        path = PurePath(str(error.filename)).relative_to(top).as_posix()
        yield Seen("" if path == "." else path, f"the folder cannot be read: {error.strerror}")
    problems.clear()


def _open(path: str | Path, flags: int) -> int:
    try:
        return os.open(path, flags)
    except OSError as error:
        raise CannotRead(f"cannot be read: {error.strerror}") from None
    except ValueError:  # a null character in it
        raise CannotRead("cannot be read: not a path") from None


def _is_visible(name: str) -> bool:
    return not name.startswith(".")


def _read_below(root: int, top: Path, path: str, limit: int = MAX_FILE_BYTES) -> bytes:
    try:
        real = PurePath(os.path.realpath(top / path, strict=True))
        return _read(_open_below(root, real.relative_to(top).parts), limit)
    except ValueError:
        raise CannotRead("a link that leads out of its folder") from None
    except OSError as error:
        raise CannotRead(f"cannot be read: {error.strerror}") from None


def _open_below(root: int, parts: tuple[str, ...]) -> int:
    """Open a file step by step, following no link on the way."""
    *folders, name = parts
    with contextlib.ExitStack() as opened:
        directory = root
        for folder in folders:
            directory = os.open(
                folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory
            )
            opened.callback(os.close, directory)
        return os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=directory)


def _read(descriptor: int, limit: int) -> bytes:
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CannotRead("not a regular file")
        if status.st_size > limit:
            raise CannotRead(f"larger than {limit} bytes")
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:  # it is being written to, or larger than one read gives
            with open(descriptor, "rb", closefd=False) as file:
                data += file.read(limit + 1 - len(data))
    except OSError as error:
        raise CannotRead(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    return _within(data, limit)


def _within(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise CannotRead(f"larger than {limit} bytes")
    return data
