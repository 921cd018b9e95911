"""Parses the files of a library: JSON, and for schemas and examples JSON objects only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from portbook.assets.json_files import CannotRead, json_files
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.wire.parsing import parse

__all__ = ["listed_folder", "objects_in", "parsed", "parsed_object", "spelled_folder"]


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


def listed_folder(folder: Path, home: Path) -> PurePosixPath:
    """Return a folder as listings and messages have it, however it was configured.

    1. Below `home`: relative to it.
    2. Below `home` once links are followed: the same.
    3. Anywhere else: absolute.
    """
    place = Path(os.path.abspath(folder))  # noqa: PTH100 - without following links, and without `..`
    for found, start in ((place, home.absolute()), (folder.resolve(), home.resolve())):
        if found.is_relative_to(start):
            return PurePosixPath(found.relative_to(start).as_posix())
    return PurePosixPath(place.as_posix())


def spelled_folder(folder: Path, home: Path) -> list[str]:
    """Return every way in which an operator may have written a folder, each to be followed by a file's path.

    Settings keep the folder alone, and not how it was written: a flag and a variable start in the current
    folder, the settings file in `home`, and both allow `./`.
    """
    place = os.path.abspath(folder)  # noqa: PTH100 - without following links, and without `..`
    written = [folder.as_posix(), place, *(os.path.relpath(place, start) for start in (home, Path()))]
    if folder.is_relative_to(home):
        written.append(folder.relative_to(home).as_posix())
    plain = ["" if each == "." else f"{each}/" for each in dict.fromkeys(written)]
    return [*plain, *(f"./{each}" for each in plain if not each.startswith("/"))]


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
