"""Checkpoints: what they state, and the leaves of their trees."""

from __future__ import annotations

from hashlib import sha256

import pytest

from portbook.audit.checkpoint_and_hash_tree import (
    CheckpointBody,
    CheckpointRow,
    PrunedFile,
    Segment,
    checkpoint_of,
    climb,
    leaf_of,
    path_of,
    root_of,
)

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


# The tree over hashes: its root, and the paths that lead to it.


def leaves(count: int) -> list[bytes]:
    return [sha256(b"%d" % number).hexdigest().encode() for number in range(count)]


def test_a_node_is_the_hash_of_a_one_and_its_children() -> None:
    two = leaves(2)
    assert root_of(two) == sha256(b"\x01" + two[0] + two[1]).hexdigest()
    assert root_of(two[:1]) == two[0].decode()


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 32, 33, 256, 257, 600])
def test_every_leaf_has_a_path_to_the_root_and_to_no_other(count: int) -> None:
    of = leaves(count)
    root, other = root_of(of), root_of(leaves(count + 1)[1:])
    for index in {0, count // 2, count - 1}:
        path = path_of(of, index)
        assert climb(of[index].decode(), path) == root != other
        assert all(len(step.before) + len(step.after) < 16 for step in path)
        if count > 1:
            assert climb(of[index - 1].decode(), path) != root


@pytest.mark.parametrize("count", [2, 16, 17, 300])
def test_a_changed_added_removed_or_moved_leaf_changes_the_root(count: int) -> None:
    of = leaves(count)
    changed = [
        [*of[:-1], leaves(count + 1)[-1]],
        [*of, of[-1]],
        of[:-1],
        [of[1], of[0], *of[2:]],
    ]
    assert len({root_of(each) for each in (of, *changed)}) == len(changed) + 1
