"""Checkpoints as JSON Lines: how they leave the store, for an auditor who has the files of the log alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from portbook.model import JSONObject
from portbook.stores.checkpoints import CheckpointRow, CoveredRecords, Segment

__all__ = ["BadCheckpointFile", "as_line", "read_checkpoints", "read_segment"]


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


def read_segment(data: dict[str, Any]) -> Segment:
    """Return a segment that was written as JSON.

    Raises `TypeError` where it is none.
    """
    segment = Segment(**data)
    texts = segment.log, segment.stream, segment.file, segment.head, segment.records or ""
    if not all(isinstance(each, str) for each in texts) or type(segment.last) is not int:
        raise TypeError("not a segment")
    return segment


def _read(line: str, number: int) -> CoveredRecords:
    try:
        data = json.loads(line)
        segments = tuple(read_segment(each) for each in data.pop("segments"))
        row = CheckpointRow(**data)
        if type(row.number) is not int or not isinstance(row.body, str):
            raise TypeError("not a checkpoint")
    except (AttributeError, KeyError, TypeError, ValueError):
        raise BadCheckpointFile(
            f"line {number} is not a checkpoint, as `audit checkpoints` prints it"
        ) from None
    return CoveredRecords(row, segments)
