"""The journal of adoptions: which files were changed, how they were, and what takes each change back.

It is written before the first file is changed, and has digests, places and names alone, no values. So
after a kill at any step, undoing finds each file as it was or as it became, and knows which.
"""

from __future__ import annotations

import glob
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from portbook.adopt.file_change import (
    ChangedMeanwhile,
    FileChange,
    check_unchanged,
    digest_of,
    draft_prefix,
    make,
    read_if_there,
    write_file,
)
from portbook.adopt.folder_turn import folder_turn
from portbook.adopt.journal_change import JournalChange, OurEntry
from portbook.adopt.undo_conflict import settle_conflict

__all__ = ["AdoptionJournal"]

_NAME: Final = "adopted.json"
_PRIVATE: Final = 0o600


@dataclass(slots=True)
class AdoptionJournal:
    """The journal of one folder of settings."""

    folder: Path
    changes: list[JournalChange] = field(default_factory=list[JournalChange])

    @classmethod
    def read(cls, folder: Path) -> AdoptionJournal:
        """Return the journal of a folder; without a file, an empty one.

        Raises `OSError` and `ValueError` where it cannot be read.
        """
        data = read_if_there(folder / _NAME)
        found = [] if data is None else cast("list[dict[str, Any]]", json.loads(data)["changes"])
        return cls(folder, [JournalChange.of_data(each) for each in found])

    def make(self, changes: list[tuple[FileChange, tuple[OurEntry, ...]]]) -> None:
        """Note changes, and make them in their order.

        Raises `ChangedMeanwhile` and `OSError` for the first that cannot be made; those before it are made,
        and they alone are noted. A file that has changed before the first one is made stops all of them.
        """
        with folder_turn(self.folder):
            self._read_again()
            try:
                for change, _ in changes:
                    check_unchanged(change)
                self._note_and_make(changes)
            finally:
                _remove_empty(self.folder)

    def _note_and_make(self, changes: list[tuple[FileChange, tuple[OurEntry, ...]]]) -> None:
        kept = list(self.changes)
        notes = [JournalChange.of(change, entries) for change, entries in changes]
        self.changes += notes
        self._write()
        for at, (change, _) in enumerate(changes):
            try:
                make(change)
            except (ChangedMeanwhile, OSError) as error:
                is_made = isinstance(error, OSError) and _is_made(notes[at])
                self.changes = kept + notes[: at + is_made]
                self._write()
                raise

    def undo(self) -> list[str]:
        """Take every change back, the last one first; return what could not be taken back.

        Raises `OSError` where a file cannot be written; the journal still has what is left to do.
        """
        conflicts: list[str] = []
        if not self.folder.is_dir():
            return conflicts
        with folder_turn(self.folder):
            self._read_again()
            if not self.changes:
                self._write()  # a kill while the first journal was written leaves a draft of it
            while self.changes:
                *earlier, last = self.changes
                problem = None if _is_repeated(last, earlier) else _undo(last)
                conflicts += [] if problem is None else [problem]
                self.changes.pop()
                self._write()
        return conflicts

    def _read_again(self) -> None:
        """Read what other processes have noted since."""
        self.changes = AdoptionJournal.read(self.folder).changes

    def _write(self) -> None:
        _remove_drafts(self.folder / _NAME)
        if not self.changes:
            (self.folder / _NAME).unlink(missing_ok=True)
            _remove_empty(self.folder / "secrets", self.folder)
            return
        data = {"changes": [each.as_data() for each in self.changes]}
        write_file(self.folder / _NAME, json.dumps(data, indent=1).encode() + b"\n", _PRIVATE)


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _remove_drafts(path: Path) -> None:
    """Remove what a kill left behind of a file that was being written."""
    for draft in path.parent.glob(f"{glob.escape(draft_prefix(path))}*"):
        draft.unlink()


def _is_made(change: JournalChange) -> bool:
    """Return whether a change that ended with an error was made all the same: its file is the new one."""
    return digest_of(read_if_there(change.path)) == change.after


def _is_repeated(change: JournalChange, earlier: list[JournalChange]) -> bool:
    """Return whether an earlier change left its file as this one says, and has the backup that is missing.

    Such a change was noted and never made: its process ended before it, or found that it came second.
    """
    return (
        change.backup is not None
        and not change.backup.exists()
        and any(
            (each.path, each.before, each.after) == (change.path, change.before, change.after)
            and each.backup is not None
            and each.backup.exists()
            for each in earlier
        )
    )


def _undo(change: JournalChange) -> str | None:
    """Take one change back; return what is in the way, or None."""
    _remove_drafts(change.path)
    now = read_if_there(change.path)
    found = digest_of(now)
    if found == change.before:  # never made, or taken back already
        if change.backup is not None:  # whole, or cut short by a kill
            change.backup.unlink(missing_ok=True)
        return None
    if found != change.after:
        return None if now is None and change.before is None else settle_conflict(change, now)
    if change.before is None:
        change.path.unlink()
        return None
    if (
        change.backup is None
        or (kept := read_if_there(change.backup)) is None
        or digest_of(kept) != change.before
    ):
        return settle_conflict(change, now)
    write_file(change.path, kept, _PRIVATE)
    change.backup.unlink()
    return None
