"""Checkpoints as lines: read as they were written, or refused with the line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.audit.checkpoint_and_hash_tree import (
    BadCheckpointFile,
    CoveredRecords,
    Segment,
    as_line,
    checkpoint_of,
    read_checkpoints,
)

SEGMENT = Segment("log", "execution", "a.jsonl", 1, 2, "a" * 64, None)
COVERED = CoveredRecords(
    checkpoint_of(None, [SEGMENT], [], None, "2026-01-02T03:04:05.000Z", None), (SEGMENT,)
)


def test_what_was_written_is_read() -> None:
    line = json.dumps(as_line(COVERED))
    assert read_checkpoints([line, "", line]) == [COVERED, COVERED]


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in as_line(COVERED).items() if key != name}


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "[]",
        "null",
        *(json.dumps(without(name)) for name in ("number", "body", "hash", "segments")),
        json.dumps({**as_line(COVERED), "number": True}),
        json.dumps({**as_line(COVERED), "segments": [{**SEGMENT._asdict(), "first": "1"}]}),
        json.dumps({**as_line(COVERED), "segments": 1}),
    ],
)
def test_what_is_no_checkpoint_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(BadCheckpointFile, match="line 2 is not a checkpoint"):
        read_checkpoints([json.dumps(as_line(COVERED)), line])
