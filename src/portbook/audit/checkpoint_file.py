"""Checkpoints as JSON Lines: how they leave the store, for an auditor who has the files of the log alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from portbook.model import JSONObject
from portbook.stores.checkpoints import CheckpointRow, CoveredRecords, Segment

__all__ = ["BadCheckpointFile", "as_line", "read_checkpoint", "read_checkpoints", "read_segment"]


class BadCheckpointFile(ValueError):
    """A file that has no checkpoints; the message says where."""


def as_line(covered: CoveredRecords) -> JSONObject:
    """Return a checkpoint and its segments as a JSON object."""
    return {**covered.checkpoint._asdict(), "segments": [each._asdict() for each in covered.segments]}


def read_checkpoints(lines: Iterable[str]) -> list[CoveredRecords]:
    """Return the checkpoints in lines that `as_line` gave.

    Raises `BadCheckpointFile` where a line is none.
    """
    return [_read(line, number) for number, line in enumerate(lines, 1) if line.strip()]


def read_segment(data: Any) -> Segment:
    """Return a segment that was written as JSON.

    Raises `ValueError` where it is none.
    """
    return Segment(**_shaped(data, _SEGMENT))


def read_checkpoint(data: Any) -> CheckpointRow:
    """Return a checkpoint that was written as JSON.

    Raises `ValueError` where it is none.
    """
    return CheckpointRow(**_shaped(data, _CHECKPOINT))


_TEXT: Final = (str,)
_NUMBER: Final = (int,)
_MAYBE: Final = (str, type(None))
_SEGMENT: Final = {
    "log": _TEXT,
    "stream": _TEXT,
    "file": _TEXT,
    "first": _NUMBER,
    "last": _NUMBER,
    "head": _TEXT,
    "records": _MAYBE,
}
_CHECKPOINT: Final = {
    "number": _NUMBER,
    "body": _TEXT,
    "hash": _TEXT,
    "key_id": _MAYBE,
    "signature": _MAYBE,
}


def _shaped(data: Any, shape: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return the members of an object; raise `ValueError` where one is missing or of a wrong type."""
    if not isinstance(data, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the caller sent it, not the code
    found = cast("dict[str, Any]", data)
    for name, types in shape.items():
        if name not in found or type(found[name]) not in types:
            raise ValueError(f"{name} is missing or of a wrong type")
    return {name: found[name] for name in shape}


def _read(line: str, number: int) -> CoveredRecords:
    try:
        data = json.loads(line)
        return CoveredRecords(read_checkpoint(data), tuple(map(read_segment, data["segments"])))
    except (KeyError, TypeError, ValueError):
        said = f"line {number} is not a checkpoint, as `audit checkpoints` prints it"
        raise BadCheckpointFile(said) from None
