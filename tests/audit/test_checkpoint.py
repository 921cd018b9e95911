"""Checkpoints: what they state, and the leaves of their trees."""

from __future__ import annotations

from hashlib import sha256

import pytest

from portbook.audit.checkpoint import CheckpointBody, checkpoint_of, leaf_of
from portbook.stores.checkpoints import CheckpointRow, PrunedFile, Segment

SEGMENT = Segment("log", "execution", "a.jsonl", 1, 2, "a" * 64, "b" * 64)


@pytest.mark.parametrize("body", ["x", "[]", "{}", '{"checkpoint_version":2,"number":1}'])
def test_what_is_no_body_is_none(body: str) -> None:
    assert CheckpointBody.read(CheckpointRow(1, body, sha256(body.encode()).hexdigest())) is None
    assert CheckpointBody.read(CheckpointRow(1, body, "0" * 64)) is None


def test_pruned_files_are_stated() -> None:
    file = PrunedFile("log", "intent", "a.jsonl")
    row = checkpoint_of(None, [], [file], None, "2026-01-02T03:04:05.000Z", None)
    body = CheckpointBody.read(row)
    assert body is not None
    assert (body.pruned, body.segments, body.root) == ((file,), 0, "0" * 64)


def test_the_leaf_of_a_segment_names_every_part_of_it() -> None:
    changed = [
        SEGMENT._replace(log="other"),
        SEGMENT._replace(stream="intent"),
        SEGMENT._replace(file="b.jsonl"),
        SEGMENT._replace(first=2),
        SEGMENT._replace(last=3),
        SEGMENT._replace(head="c" * 64),
        SEGMENT._replace(records=None),
    ]
    assert len({leaf_of(each) for each in (SEGMENT, *changed)}) == len(changed) + 1
