"""Segments of several writers, and the checkpoints that cover them, in one store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from portbook.stores.checkpoints import CheckpointRow, CheckpointStore, PrunedFile, Segment
from portbook.stores.sqlite_store import Store

ONE = Segment("log", "execution", "a.jsonl", 1, 2, "a" * 64, "b" * 64)
OTHER = ONE._replace(file="b.jsonl")


def make(newest: CheckpointRow | None, waiting: Sequence[Segment], floor: int | None) -> CheckpointRow | None:
    number = 1 if newest is None else newest.number + 1
    return CheckpointRow(number, f"{len(waiting)} {floor}", str(number)) if waiting else None


def wait(newest: CheckpointRow | None, waiting: Sequence[Segment], floor: int | None) -> None: ...


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[CheckpointStore]:
    store = Store(tmp_path / "portbook.db")
    yield CheckpointStore(store)
    store.close()


def test_a_checkpoint_covers_what_every_writer_published_since_the_last(kept: CheckpointStore) -> None:
    assert kept.covered() == []
    assert kept.cover([OTHER], [], wait).result() is False
    assert kept.covered() == []
    assert kept.cover([ONE], [], make).result() is True
    after = ONE._replace(first=3, last=3)
    assert kept.cover([after], [], make).result() is True
    first, second = kept.covered()
    assert (first.segments, second.segments) == ((ONE, OTHER), (after,))
    assert kept.last_published() == {
        ("execution", "a.jsonl"): ("log", 3),
        ("execution", "b.jsonl"): ("log", 2),
    }


def test_what_is_published_twice_or_with_a_gap_counts_once(kept: CheckpointStore) -> None:
    kept.cover([ONE], [], wait).result()
    kept.cover([ONE, ONE._replace(first=2, last=9), ONE._replace(first=7, last=8)], [], make).result()
    [covered] = kept.covered()
    assert covered.segments == (ONE,)


def test_nothing_to_cover_makes_no_checkpoint(kept: CheckpointStore) -> None:
    assert kept.cover([], [], make).result() is True
    assert kept.covered() == []


def test_checkpoints_of_pruned_files_alone_are_deleted_from_the_front(kept: CheckpointStore) -> None:
    kept.cover([ONE], [], make).result()
    kept.cover([OTHER], [], make).result()
    kept.cover([ONE._replace(first=3, last=3)], [], make).result()
    more = OTHER._replace(first=3, last=3)
    kept.cover([more], [PrunedFile("log", "execution", "a.jsonl")], make).result()
    covered = kept.covered()
    assert [each.checkpoint.number for each in covered] == [
        2,
        3,
        4,
    ]  # the third stands behind one that is kept
    assert covered[-1].checkpoint.body == "1 2"
    kept.cover([], [PrunedFile("renamed", "execution", "b.jsonl")], wait).result()
    last = ONE._replace(file="c.jsonl")
    kept.cover([last], [], make).result()
    [only] = kept.covered()
    assert (only.checkpoint.number, only.checkpoint.body, only.segments) == (5, "1 5", (last,))
