"""How far files were shipped."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from portbook.audit.shipping import unshipped_records
from portbook.audit.shipping.unshipped_records import ShippedPositions


def test_positions_outlive_a_process_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    first = ShippedPositions(tmp_path / "shipped", "r")
    assert first.hold()
    first.note("execution/a b.jsonl", 7)
    first.note("execution/a b.jsonl", 12)
    first.note("intent/c.jsonl", 5)
    first.forget_all_but({"execution/a b.jsonl"})
    first.close()
    second = ShippedPositions(tmp_path / "shipped", "r")
    assert second.hold()
    assert (second.of("execution/a b.jsonl"), second.of("execution/new.jsonl")) == (12, 0)
    second.close()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "shipped").iterdir()} == {0o600}


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unshipped_records, "_MAX_BYTES", 500)
    positions = ShippedPositions(tmp_path, "r")
    assert positions.hold()
    for offset in range(1000):
        positions.note("execution/a.jsonl", offset)
    assert (tmp_path / "r.positions").stat().st_size < 600
    positions.close()
    again = ShippedPositions(tmp_path, "r")
    assert again.hold()
    assert again.of("execution/a.jsonl") == 999
    again.close()


class FullDisk:
    """Takes a few bytes of a line, then none, until there is space again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
        self.is_full = True
        write = os.write

        def cut(file: int, data: bytes) -> int:
            nonlocal taken
            if not self.is_full:
                return write(file, data)
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
            written, taken = write(file, data[:taken]), 0
            return written

        monkeypatch.setattr(os, "write", cut)


@pytest.mark.parametrize("taken", [1, 2, 9, 10, 12, 20])
def test_a_line_that_a_full_disk_cut_off_moves_no_position_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    positions = ShippedPositions(tmp_path, "r")
    assert positions.hold()
    positions.note("execution/a.jsonl", 90)
    disk = FullDisk(monkeypatch, taken)
    with pytest.raises(OSError, match="No space left"):
        positions.note("execution/a.jsonl", 150)
    torn = (tmp_path / "r.positions").read_bytes()
    disk.is_full = False
    positions.note("execution/a.jsonl", 300)
    positions.close()
    assert position_in(tmp_path) == 300
    # Killed while the disk was full, and gone on with by a process that did not know.
    (tmp_path / "r.positions").write_bytes(torn + b"300 execution/a.jsonl\n")
    assert position_in(tmp_path) == 90


def test_a_line_that_is_not_as_it_was_written_counts_for_nothing(tmp_path: Path) -> None:
    positions = ShippedPositions(tmp_path, "r")
    assert positions.hold()
    positions.note("execution/a.jsonl", 90)
    positions.close()
    path = tmp_path / "r.positions"
    path.write_bytes(
        path.read_bytes() + b"900 execution/a.jsonl\n00000000 900 execution/a.jsonl\n \n\xff \xff\n"
    )
    assert position_in(tmp_path) == 90


def test_a_file_that_cannot_be_written_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    positions = ShippedPositions(tmp_path, "r")
    (tmp_path / "r.draft").mkdir()
    for _ in range(2):
        with pytest.raises(OSError, match="directory"):
            positions.hold()
    (tmp_path / "r.draft").rmdir()
    assert positions.hold()
    positions.close()


def position_in(folder: Path) -> int:
    positions = ShippedPositions(folder, "r")
    assert positions.hold()
    try:
        return positions.of("execution/a.jsonl")
    finally:
        positions.close()
