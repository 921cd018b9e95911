"""What a journal wrote is covered once, also after a failure, and what others left is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from portbook.audit.checkpoint_and_hash_tree import CheckpointRow, PrunedFile, Segment, root_of
from portbook.audit.checkpoint_and_log_verification import verify_checkpoints
from portbook.audit.checkpoints_made_and_stored import CheckpointMaker, CheckpointStore, log_name
from portbook.audit.journal import Journal
from portbook.audit.record_views_and_fields import as_pieces
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.sqlite_store import Store


class Hands:
    """A clock whose hands a test moves."""

    def __init__(self) -> None:
        self.seconds = 0

    def now(self) -> str:
        return f"2026-01-02T03:04:{self.seconds:02d}.000Z"

    def tick(self) -> float:
        return float(self.seconds)


class Desk:
    """Journals of one folder, with one store."""

    def __init__(self, folder: Path) -> None:
        self.log_dir = folder / "runs"
        self.clock = Hands()
        self.store = Store(folder / "portbook.db")
        self.kept = CheckpointStore(self.store)
        self._opened: list[Journal] = []

    def begin(self, run: str, keep: int = 10) -> tuple[Journal, CheckpointMaker]:
        journal = Journal(self.log_dir, started=f"2026-01-01T00:00:00.00{run}Z", run=run, keep=keep)
        journal.collect()
        self._opened.append(journal)
        return journal, CheckpointMaker(journal, self.kept, self.log_dir, self.clock, lambda: None, 3)

    def cover(self, maker: CheckpointMaker, **options: Any) -> bool:
        maker.collect()
        covering = maker.cover(**options)
        if covering is not None:
            maker.settle(covering)
        return covering is not None

    def close(self) -> None:
        for journal in self._opened:
            journal.close()
        self.store.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def write(journal: Journal, *names: str) -> None:
    journal.write_all([as_pieces(b'{"a":1}', b'{"request_id":"%b"}' % name.encode()) for name in names])


def test_two_writers_are_covered_by_one_checkpoint_when_it_is_due(desk: Desk) -> None:
    (one, first), (other, second) = desk.begin("1"), desk.begin("2")
    write(one, "a")
    assert desk.cover(first)
    write(one, "b", "c")
    write(other, "d")
    other.intend(b'{"request_id":"e"}')
    desk.cover(first)  # too early: it is published, and waits
    desk.cover(second)
    assert len(desk.kept.covered()) == 1
    desk.clock.seconds = 3
    assert desk.cover(first)
    covered = desk.kept.covered()
    assert [(each.stream, each.file[-7:-6], each.first, each.last) for each in covered[1].segments] == [
        ("execution", "1", 2, 3),
        ("execution", "2", 1, 1),
        ("intent", "2", 1, 1),
    ]
    assert verify_checkpoints(covered).broken is None
    assert not desk.cover(first)
    desk.cover(second)
    assert len(desk.kept.covered()) == 2


def test_the_last_checkpoint_of_a_process_does_not_wait(desk: Desk) -> None:
    journal, maker = desk.begin("1")
    write(journal, "a")
    desk.cover(maker)
    write(journal, "b")
    desk.cover(maker, is_last=True)
    assert len(desk.kept.covered()) == 2


def test_a_clock_that_was_set_back_holds_no_checkpoint_back(desk: Desk) -> None:
    journal, maker = desk.begin("1")
    desk.clock.seconds = 30
    write(journal, "a")
    desk.cover(maker)
    desk.clock.seconds = 0
    write(journal, "b")
    desk.cover(maker)
    assert len(desk.kept.covered()) == 2


def test_what_could_not_be_stored_is_covered_later(desk: Desk, tmp_path: Path) -> None:
    journal, maker = desk.begin("1")
    write(journal, "a")
    blocked = Store(tmp_path)  # a folder is no store
    maker._store = CheckpointStore(blocked)  # pyright: ignore[reportPrivateUsage] - a store that fails
    maker.collect()
    with pytest.raises(StoreError):
        maker.cover()
    blocked.close()
    maker._store = desk.kept  # pyright: ignore[reportPrivateUsage] - one that works again
    write(journal, "b")
    desk.cover(maker)
    [covered] = desk.kept.covered()
    assert [(each.first, each.last) for each in covered.segments] == [(1, 1), (2, 2)]


def test_what_a_killed_process_left_is_covered_with_its_tree(desk: Desk) -> None:
    killed = Journal(desk.log_dir, started="2026-01-01T00:00:00.001Z", run="1", keep=10)
    write(killed, *"abcdefghijklmnopqrst")
    killed.close()
    _, maker = desk.begin("2")
    left = maker.left_behind()
    maker.adopt(left)
    desk.cover(maker)
    [covered] = desk.kept.covered()
    [segment] = covered.segments
    assert (segment.log, segment.first, segment.last) == (log_name(desk.log_dir), 1, 20)
    path = desk.log_dir / "mcp_server" / "execution" / segment.file
    hashes = [line.rpartition(b'"hash":"')[2][:64] for line in path.read_bytes().splitlines()]
    assert (segment.head, segment.records) == (hashes[-1].decode(), root_of(hashes))
    assert maker.left_behind() == []


def test_a_record_that_could_not_be_written_is_covered_by_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, maker = desk.begin("1")
    write(journal, "a")

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        write(journal, "b")
    write(journal, "c")
    desk.cover(maker)
    [covered] = desk.kept.covered()
    assert [(each.first, each.last) for each in covered.segments] == [(1, 2)]


def test_pruned_files_are_named_in_the_next_checkpoint(desk: Desk) -> None:
    for run in "12":
        journal, maker = desk.begin(run)
        write(journal, run)
        desk.cover(maker, is_last=True)
        journal.close()
        desk._opened.clear()  # pyright: ignore[reportPrivateUsage] - it is closed
    _, maker = desk.begin("3", keep=1)
    desk.clock.seconds = 9
    desk.cover(maker)
    body = desk.kept.covered()[-1].checkpoint.body
    assert '"file":"2026-01-01T00-00-00.001Z.1.jsonl"' in body
    assert '"file":"2026-01-01T00-00-00.002Z.2.jsonl"' in body


# Segments of several writers, and the checkpoints that cover them, in one store.


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
