"""What is left to ship, read from the files of journals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.audit.journal import Journal
from portbook.audit.record_views_and_fields import as_pieces
from portbook.audit.shipping.unshipped_records import UnshippedRecords


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = a_journal(tmp_path, "01")
    yield journal
    journal.close()


def a_journal(log_dir: Path, run: str) -> Journal:
    return Journal(log_dir, started=f"2026-01-01T00:00:{run}.000Z", run=run, keep=10)


def write(journal: Journal, *numbers: int, padding: int = 0) -> None:
    record = [as_pieces(b"{}", json.dumps({"n": number, "p": "x" * padding}).encode()) for number in numbers]
    assert not journal.write_all(record)


def shipped(unshipped: UnshippedRecords) -> list[tuple[str, int, object]]:
    """Ship everything: stream, number in the file, and number in the test."""
    found: list[tuple[str, int, object]] = []
    while (batch := unshipped.next()) is not None:
        found += ((each.stream, each.seq, each.fields["n"]) for each in batch.records)
        unshipped.confirm(batch)
    return found


def test_records_are_shipped_in_their_order_and_once(tmp_path: Path, journal: Journal) -> None:
    unshipped = UnshippedRecords(tmp_path, "r")
    assert unshipped.next() is None
    write(journal, 1, 2)
    journal.intend(b'{"n":9}')
    assert shipped(unshipped) == [("execution", 1, 1), ("execution", 2, 2), ("intent", 1, 9)]
    write(journal, 3)
    assert shipped(unshipped) == [("execution", 3, 3)]
    unshipped.close()


def test_what_was_not_confirmed_comes_again_also_in_the_next_process(
    tmp_path: Path, journal: Journal
) -> None:
    first = UnshippedRecords(tmp_path, "r")
    write(journal, 1)
    assert shipped(first) == [("execution", 1, 1)]
    write(journal, 2)
    assert first.next() == first.next() is not None
    first.close()
    second = UnshippedRecords(tmp_path, "r")
    assert shipped(second) == [("execution", 2, 2)]
    second.close()


def test_what_a_process_left_behind_is_shipped_by_the_next_oldest_first(tmp_path: Path) -> None:
    ended = a_journal(tmp_path, "01")
    write(ended, 1)
    ended.close()
    later = a_journal(tmp_path, "02")
    write(later, 2)
    unshipped = UnshippedRecords(tmp_path, "r")
    assert shipped(unshipped) == [("execution", 1, 1), ("execution", 1, 2)]
    later.close()
    unshipped.close()


def test_one_process_ships_at_a_time_and_each_receiver_gets_everything(
    tmp_path: Path, journal: Journal
) -> None:
    write(journal, 1)
    first, second = UnshippedRecords(tmp_path, "r"), UnshippedRecords(tmp_path, "r")
    assert first.next() is not None
    assert second.next() is None
    first.close()
    assert second.next() is not None
    other = UnshippedRecords(tmp_path, "s")
    assert shipped(other) == [("execution", 1, 1)]
    second.close()
    other.close()


def test_batches_are_small_and_a_long_record_is_a_batch_of_its_own(tmp_path: Path, journal: Journal) -> None:
    write(journal, *range(100), padding=5_000)
    write(journal, 100, padding=400_000)
    unshipped = UnshippedRecords(tmp_path, "r")
    sizes: list[int] = []
    while (batch := unshipped.next()) is not None:
        unshipped.confirm(batch)
        sizes.append(len(batch.records))
        assert len(batch.records) == 1 or sum(len(each.line) for each in batch.records) <= 1 << 17
    assert sum(sizes) == 101
    assert len(sizes) > 4
    unshipped.close()


def test_a_record_that_is_being_written_is_left_until_it_is_whole(tmp_path: Path, journal: Journal) -> None:
    write(journal, 1)
    (path,) = (each for each in (tmp_path / "mcp_server/execution").glob("*.jsonl") if not each.is_symlink())
    whole = path.read_bytes()
    path.write_bytes(whole + b"not a record\n" + whole[:20])
    unshipped = UnshippedRecords(tmp_path, "r")
    assert shipped(unshipped) == [("execution", 1, 1)]
    path.write_bytes(whole + b"not a record\n" + whole)
    assert shipped(unshipped) == [("execution", 1, 1)]
    unshipped.close()


def test_positions_that_were_cut_off_by_a_kill_ship_again(tmp_path: Path, journal: Journal) -> None:
    write(journal, 1)
    unshipped = UnshippedRecords(tmp_path, "r")
    assert shipped(unshipped)
    unshipped.close()
    (positions,) = (tmp_path / "mcp_server/shipped").glob("*.positions")
    positions.write_bytes(positions.read_bytes()[:-1])
    unshipped = UnshippedRecords(tmp_path, "r")
    assert shipped(unshipped) == [("execution", 1, 1)]
    unshipped.close()
