"""How far files were shipped."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from portbook.audit.shipping import shipped_positions
from portbook.audit.shipping.shipped_positions import ShippedPositions


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
    monkeypatch.setattr(shipped_positions, "_MAX_BYTES", 500)
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
