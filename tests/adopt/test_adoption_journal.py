"""Adoptions are made and taken back in steps, and a kill at any of them leaves every file old or new."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from portbook.adopt.adoption_journal import AdoptionJournal, OurEntry
from portbook.adopt.file_change import ChangedMeanwhile, FileChange
from support.portbook_process import environment

OLD: Final = b'{"mcpServers": {"a": {}}}'
NEW: Final = b'{"mcpServers": {"portbook": {}}}'
ENTRY: Final = OurEntry("json", ("mcpServers",), "portbook")

# Ends itself without a trace before the step of the given number, as a kill does.
KILLED: Final = """
import os, sys
from pathlib import Path
left = int(sys.argv[1])

def counted(function):
    def step(*arguments, **options):
        global left
        if left == 0:
            os._exit(9)
        left -= 1
        return function(*arguments, **options)
    return step

import tempfile
from portbook.adopt import adoption_journal, file_change
for name in ("open", "replace", "fsync", "fchmod", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
Path.unlink = counted(Path.unlink)
from portbook.adopt.adoption_journal import AdoptionJournal
from tests_journal import changes
folder = Path(sys.argv[2])
journal = AdoptionJournal.read(folder / "settings")
if sys.argv[3] == "make":
    journal.make(changes(folder))
else:
    journal.undo()
"""

CHANGES: Final = f"""
from portbook.adopt.adoption_journal import OurEntry
from portbook.adopt.file_change import FileChange

def changes(folder):
    entry = OurEntry("json", ("mcpServers",), "portbook")
    new = FileChange(folder / "settings" / "secrets" / "key", None, b"secret", 0o600)
    first = FileChange(folder / "one.json", {OLD!r}, {NEW!r}, 0o600, folder / "one.json.bak")
    second = FileChange(folder / "two.json", {OLD!r}, {NEW!r}, 0o600, folder / "two.json.bak")
    return [(new, ()), (first, (entry,)), (second, (entry,))]
"""
# More steps than either direction has; a run that is not killed ends with 0.
MOST_STEPS: Final = 80


def killed(folder: Path, step: int, what: str) -> bool:
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "tests_journal.py").write_text(CHANGES)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(step), str(folder), what],
        env=environment(PYTHONPATH=str(folder / "code")),
        check=False,
        timeout=60,
    )
    assert done.returncode in (0, 9)
    return done.returncode == 9


def made(folder: Path) -> None:
    scope: dict[str, Any] = {}
    exec(CHANGES, scope)  # what a process that may be killed runs, too
    AdoptionJournal.read(folder / "settings").make(scope["changes"](folder))


def state(folder: Path) -> dict[str, bytes]:
    """Return every file, and every folder as an empty one."""
    found = (each for each in folder.rglob("*") if "code" not in each.parts)
    return {str(each.relative_to(folder)): each.read_bytes() if each.is_file() else b"" for each in found}


def prepared(folder: Path) -> dict[str, bytes]:
    for name in ("one.json", "two.json"):
        (folder / name).write_bytes(OLD)
    return state(folder)


@pytest.mark.covers("adopt.kill")
def test_a_kill_at_any_step_leaves_every_file_old_or_new_and_undo_gives_all_back(tmp_path: Path) -> None:
    before = prepared(tmp_path)
    for step in range(MOST_STEPS):
        was_killed = killed(tmp_path, step, "make")
        for name in ("one.json", "two.json"):
            assert (tmp_path / name).read_bytes() in (OLD, NEW), step
        assert AdoptionJournal.read(tmp_path / "settings").undo() == []
        assert state(tmp_path) == before, step
        if not was_killed:
            assert step > 15
            return
    raise AssertionError("it never came to its end")


@pytest.mark.covers("adopt.kill-undo")
def test_a_kill_while_undoing_is_made_good_by_undoing_again(tmp_path: Path) -> None:
    before = prepared(tmp_path)
    for step in range(MOST_STEPS):
        made(tmp_path)
        was_killed = killed(tmp_path, step, "undo")
        for name in ("one.json", "two.json"):
            assert (tmp_path / name).read_bytes() in (OLD, NEW), step
        assert AdoptionJournal.read(tmp_path / "settings").undo() == []
        assert state(tmp_path) == before, step
        if not was_killed:
            assert step > 15
            return
    raise AssertionError("it never came to its end")


def test_a_file_that_changed_before_its_turn_stops_the_adoption(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_bytes(b"changed")
    journal = AdoptionJournal.read(tmp_path / "settings")
    with pytest.raises(ChangedMeanwhile, match="has changed meanwhile; run the command again"):
        journal.make([(FileChange(path, OLD, NEW, 0o600, tmp_path / "backup"), (ENTRY,))])
    assert state(tmp_path) == {"one.json": b"changed"}


def test_after_a_file_that_changed_meanwhile_the_next_adoption_is_undone_without_a_conflict(
    tmp_path: Path,
) -> None:
    path, settings = tmp_path / "one.json", tmp_path / "settings"
    path.write_bytes(b"edited")
    with pytest.raises(ChangedMeanwhile):
        AdoptionJournal.read(settings).make([(FileChange(path, OLD, NEW, 0o600, tmp_path / "1"), (ENTRY,))])
    AdoptionJournal.read(settings).make([(FileChange(path, b"edited", NEW, 0o600, tmp_path / "2"), (ENTRY,))])
    assert AdoptionJournal.read(settings).undo() == []
    assert state(tmp_path) == {"one.json": b"edited"}


def test_of_two_adoptions_that_were_planned_together_the_second_notes_nothing(tmp_path: Path) -> None:
    before = prepared(tmp_path)
    first, second = (AdoptionJournal.read(tmp_path / "settings") for _ in range(2))
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    first.make([(FileChange(one, OLD, NEW, 0o600, tmp_path / "1"), (ENTRY,))])
    with pytest.raises(ChangedMeanwhile):
        second.make([(FileChange(path, OLD, NEW, 0o600, _kept(path)), (ENTRY,)) for path in (two, one)])
    assert two.read_bytes() == OLD
    assert [each.path for each in AdoptionJournal.read(tmp_path / "settings").changes] == [one]
    assert second.undo() == []
    assert state(tmp_path) == before


def test_a_note_of_the_same_change_that_was_never_made_is_skipped(tmp_path: Path) -> None:
    before = prepared(tmp_path)
    one, settings = tmp_path / "one.json", tmp_path / "settings"
    AdoptionJournal.read(settings).make([(FileChange(one, OLD, NEW, 0o600, tmp_path / "1"), (ENTRY,))])
    journal = json.loads((settings / "adopted.json").read_text())
    journal["changes"].append({**journal["changes"][0], "backup": str(tmp_path / "2")})
    (settings / "adopted.json").write_text(json.dumps(journal))
    assert AdoptionJournal.read(settings).undo() == []
    assert state(tmp_path) == before


def test_a_change_that_fails_is_not_noted_and_those_before_it_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prepared(tmp_path)
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    replace = os.replace

    def refused(source: str, target: Path) -> None:
        if target == two:
            raise PermissionError(1, "not permitted")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refused)
    journal = AdoptionJournal.read(tmp_path / "settings")
    with pytest.raises(PermissionError):
        journal.make(
            [(FileChange(path, OLD, NEW, 0o600, _kept(path)), (ENTRY,)) for path in (one, two)],
        )
    assert [each.path for each in AdoptionJournal.read(tmp_path / "settings").changes] == [one]
    assert not (tmp_path / "two.json.bak").exists()
    assert AdoptionJournal.read(tmp_path / "settings").undo() == []
    assert state(tmp_path) == before


def test_conflicts_are_told_and_the_rest_is_given_back(tmp_path: Path) -> None:
    made = {name: tmp_path / name for name in ("gone", "new", "edited", "entry", "lost")}
    for name in ("gone", "edited", "entry", "lost"):
        made[name].write_bytes(OLD)
    journal = AdoptionJournal.read(tmp_path / "settings")
    journal.make(
        [
            (FileChange(path, path.read_bytes() if path.exists() else None, NEW, 0o600, _kept(path)), entries)
            for path, entries in (
                (made["gone"], (ENTRY,)),
                (made["new"], ()),
                (made["edited"], ()),
                (made["entry"], (ENTRY,)),
                (made["lost"], (ENTRY,)),
            )
        ]
    )
    made["gone"].unlink()
    made["edited"].write_bytes(b"7")
    made["entry"].write_bytes(b"no JSON")
    (tmp_path / "lost.bak").unlink()
    told = AdoptionJournal.read(tmp_path / "settings").undo()
    assert [line.removeprefix(str(tmp_path)) for line in told] == [
        f"/lost has changed since; only our entry was removed from it; it was {tmp_path}/lost.bak before",
        (
            "/entry has changed since, and our entry cannot be removed from it: line 1 is not JSON; "
            f"it was {tmp_path}/entry.bak before"
        ),
        f"/edited has changed since, and stays as it is; it was {tmp_path}/edited.bak before",
        f"/gone is gone; it was {tmp_path}/gone.bak before",
    ]
    assert not made["new"].exists()
    assert json.loads(made["lost"].read_bytes()) == {"mcpServers": {}}
    assert AdoptionJournal.read(tmp_path / "settings").changes == []


def _kept(path: Path) -> Path | None:
    return path.with_name(f"{path.name}.bak") if path.exists() else None
