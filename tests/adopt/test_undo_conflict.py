"""What undoing does in a file that has changed since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from portbook.adopt.adoption_journal import JournalChange, OurEntry, settle_conflict
from portbook.adopt.file_change import digest_of

OURS: Final = {"command": "portbook"}
A: Final = {"command": "a"}
B: Final = {"command": "b"}


@pytest.mark.parametrize(
    ("now", "after", "told"),
    [
        pytest.param(
            {"portbook": OURS, "c": {}},
            {"a": A, "b": B, "c": {}},
            "our entry was replaced by what was there before: a, b; it was BACKUP before",
            id="both are given back",
        ),
        pytest.param(
            {"a": {"command": "mine"}, "portbook": OURS},
            {"a": {"command": "mine"}, "b": B},
            "our entry was replaced by what was there before: b; not given back: a; "
            "to restore, copy from BACKUP; it was BACKUP before",
            id="a name is taken",
        ),
        pytest.param(
            {"a": A, "b": B, "portbook": OURS},
            {"a": A, "b": B},
            "only our entry was removed from it; it was BACKUP before",
            id="both are there again",
        ),
        pytest.param(
            {"a": A},
            {"a": A},
            "our entry is not in it any more; not given back: b; "
            "to restore, copy from BACKUP; it was BACKUP before",
            id="our entry is gone",
        ),
    ],
)
def test_what_our_entry_replaced_comes_back_where_its_names_are_free(
    tmp_path: Path, now: dict[str, Any], after: dict[str, Any], told: str
) -> None:
    path, backup = tmp_path / "file", tmp_path / "backup"
    backup.write_text(json.dumps({"s": {"a": A, "b": B}}))
    path.write_text(json.dumps({"s": now, "k": 1}))
    ours = OurEntry("json", ("s",), "portbook", ("a", "b"))
    change = JournalChange(path, digest_of(backup.read_bytes()), "different", backup, (ours,))
    message = settle_conflict(change, path.read_bytes())
    assert message == f"{path} has changed since; {told.replace('BACKUP', str(backup))}"
    assert json.loads(path.read_text()) == {"s": after, "k": 1}


def test_values_that_cannot_be_written_are_not_given_back(tmp_path: Path) -> None:
    path, backup = tmp_path / "file", tmp_path / "backup"
    backup.write_text("[s.a]\nsince = 2026-01-02\n")
    path.write_text("k = 1\n[s.portbook]\nx = 1\n")
    ours = OurEntry("toml", ("s",), "portbook", ("a",))
    change = JournalChange(path, digest_of(backup.read_bytes()), "different", backup, (ours,))
    message = settle_conflict(change, path.read_bytes())
    assert f"only our entry was removed from it; not given back: a; to restore, copy from {backup}" in message
    assert path.read_text() == "k = 1\n"
