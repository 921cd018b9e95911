"""Reads the JSON files of a folder, without ever leaving it, and parses them.

Only regular files up to a size limit are read. A symbolic link is followed where it ends inside the folder,
as in mounted configuration. Each step of a path is opened relative to its open parent folder, so that a file
replaced in the meantime cannot lead outside. The order is always the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.wire.parsing import parse

__all__ = [
    "MAX_FILES",
    "MAX_FILE_BYTES",
    "MAX_TOTAL_BYTES",
    "STDIN",
    "CannotRead",
    "Found",
    "Seen",
    "json_files",
    "objects_in",
    "parsed",
    "parsed_object",
    "read_below",
    "read_file",
    "read_named",
    "read_walked",
    "walk",
]


# Twenty times the largest schema of MCP; a larger file is data, not a schema or an example.
MAX_FILE_BYTES: Final = 4 * 1024 * 1024

# The limits of a library: its bytes in memory, and its files.
MAX_TOTAL_BYTES: Final = 256 * 1024 * 1024
MAX_FILES: Final = 10_000

# The file name that means standard input.
STDIN: Final = "-"

# Opening must not block on a pipe without a writer, nor acquire a controlling terminal.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# A name that is not UTF-8 reaches Python with lone surrogates, which JSON cannot hold.
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class CannotRead(Exception):
    """A file that cannot be read; the message gives the reason, without the path."""


class Found(NamedTuple):
    """A file: its path below the folder, with slashes, and its bytes or the problem."""

    path: str
    data: bytes
    problem: str = ""


class Seen(NamedTuple):
    """A file, or a folder that cannot be listed: its path below the searched folder."""

    path: str
    problem: str = ""


def json_files(folder: Path, *, is_deep: bool = True) -> Iterator[Found]:
    """Yield the visible files in and below `folder` whose names end in `.json`, ordered by path.

    Raises `CannotRead` where the folder itself cannot be opened.
    """
    try:
        top = folder.resolve(strict=True)
        root = os.open(top, _FOLDER)
    except (OSError, RuntimeError) as error:  # before 3.13, a link that leads to itself is a RuntimeError
        raise CannotRead(
            f"cannot be read: {getattr(error, 'strerror', None) or 'a cycle of links'}"
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
    """Return the bytes of one configured file; links are followed anywhere.

    Raises `CannotRead` where it is missing, not a regular file, or larger than `limit`.
    """
    return _read(_open(path, _FLAGS), limit)


def read_named(path: str, limit: int) -> bytes:
    """Return the bytes of a file named on the command line, which may be a pipe or `-`.

    Raises `CannotRead` where it is missing, a folder, or larger than `limit`.
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
    """Return the bytes of a file that was found by searching `folder`, which links may not leave.

    Raises `CannotRead` where a link does, or it is not a regular file, or larger than `limit`.
    """
    try:
        descriptor = os.open(path, _FLAGS | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise CannotRead(f"cannot be read: {error.strerror}") from None
        return read_below(Path(folder), os.path.relpath(path, folder), limit)
    return _read(descriptor, limit)


def read_below(folder: Path, path: str, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of the file at `path` below `folder`, which links may not leave.

    Raises `CannotRead` where a link does, or it is missing, not a regular file, or larger than `limit`.
    """
    try:
        top = folder.resolve(strict=True)
        root = os.open(top, _FOLDER)
    except (OSError, RuntimeError):
        raise CannotRead("cannot be read: its folder cannot be opened") from None
    try:
        return _read_below(root, top, path, limit)
    finally:
        os.close(root)


def walk(top: str | Path, *, is_deep: bool = True) -> Iterator[Seen]:
    """Yield the visible files in and below `top` whose names end in `.json`; follow no links.

    In the order of their paths, folder by folder; a folder that cannot be listed is yielded too.
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
    except ValueError:  # it contains a null character
        raise CannotRead("cannot be read: not a path") from None


def _is_visible(name: str) -> bool:
    return not name.startswith(".")


def _read_below(root: int, top: Path, path: str, limit: int = MAX_FILE_BYTES) -> bytes:
    try:
        real = PurePath(os.path.realpath(top / path, strict=True))
        return _read(_open_below(root, real.relative_to(top).parts), limit)
    except ValueError:
        raise CannotRead("a link that points outside of its folder") from None
    except OSError as error:
        raise CannotRead(f"cannot be read: {error.strerror}") from None


def _open_below(root: int, parts: tuple[str, ...]) -> int:
    """Open a file step by step, without following links."""
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
        if len(data) != status.st_size:  # it is being written to, or larger than one read returns
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


# The files of a library, parsed: JSON, and for schemas and examples JSON objects only.


def objects_in(folder: Path, leave_out: Callable[[str, str], None]) -> Iterator[tuple[str, JSONObject]]:
    """Yield the JSON objects in a folder's files with their paths below it.

    `leave_out` is called for every other file with its path (empty for the folder itself) and the reason.
    """
    try:
        for found in json_files(folder):
            problem = found.problem
            try:
                if not problem:
                    yield found.path, parsed_object(found.data)
            except CannotRead as reason:
                problem = str(reason)
            if problem:
                leave_out(found.path, problem)
    except CannotRead as reason:
        leave_out("", str(reason))


def parsed(data: bytes) -> JSON:
    """Parse the JSON of a file.

    Raises `CannotRead` where it is not JSON.
    """
    try:
        return parse(data)
    except Refused as refused:
        raise CannotRead(f"not JSON: {refused.findings[0].message}") from None


def parsed_object(data: bytes) -> JSONObject:
    """Parse the JSON object in a file.

    Raises `CannotRead` where it is not one.
    """
    document = parsed(data)
    if not isinstance(document, dict):
        raise CannotRead("must be an object")
    return document
