"""Parses the files of a library: JSON, and for schemas and examples JSON objects only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from portbook.assets.files import CannotRead, json_files
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.wire.parsing import parse

__all__ = ["objects_in", "parsed", "parsed_object", "shown_path"]


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


def shown_path(folder: Path, path: str) -> str:
    """Return the path of a file for messages: the folder as configured, and the file below it."""
    return (PurePosixPath(folder.as_posix()) / path).as_posix()


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
