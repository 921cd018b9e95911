"""What the files of a library hold: JSON, and of schemas and examples JSON objects alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from portbook.assets.files import CannotRead, json_files
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.wire.parsing import parse

__all__ = ["objects_in", "parsed", "parsed_object", "shown_path"]


def objects_in(folder: Path, leave_out: Callable[[str, str], None]) -> Iterator[tuple[str, JSONObject]]:
    """Yield the JSON objects in a folder's files by their paths below it.

    `leave_out` is told of what is none: its path below the folder, empty for the folder itself, and why.
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
    """Return the path of a file as people know it: the folder as it was named, and the file below it."""
    return (PurePosixPath(folder.as_posix()) / path).as_posix()


def parsed(data: bytes) -> JSON:
    """Return what is in a file.

    Raises `CannotRead` where it is not JSON.
    """
    try:
        return parse(data)
    except Refused as refused:
        raise CannotRead(f"not JSON: {refused.findings[0].message}") from None


def parsed_object(data: bytes) -> JSONObject:
    """Return the object in a file.

    Raises `CannotRead` where it is none.
    """
    document = parsed(data)
    if not isinstance(document, dict):
        raise CannotRead("must be an object")
    return document
