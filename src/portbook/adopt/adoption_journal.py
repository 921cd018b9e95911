"""The journal of adoptions: which files were changed, how they were, and what takes each change back.

It is written before the first file is changed, and has digests and places alone, no contents. So after a kill
at any step, undoing finds each file as it was or as it became, and knows which.
"""

from __future__ import annotations

import glob
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from portbook.adopt.client_document import KeyPath, NotReadable, TextForm, decoded, edited, entries_at, parsed
from portbook.adopt.file_change import FileChange, digest_of, draft_prefix, make, read_if_there, write_file

__all__ = ["AdoptionJournal", "JournalChange", "OurEntry"]

_NAME: Final = "adopted.json"
_PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class OurEntry:
    """An entry of ours in a client's file."""

    form: TextForm
    path: KeyPath
    name: str


@dataclass(frozen=True, slots=True)
class JournalChange:
    """One change as the journal has it."""

    path: Path
    before: str | None
    after: str
    backup: Path | None
    entries: tuple[OurEntry, ...] = ()

    @classmethod
    def of(cls, change: FileChange, entries: tuple[OurEntry, ...] = ()) -> JournalChange:
        """Return the entry for a change that is about to be made."""
        after = digest_of(change.after)
        assert after is not None
        return cls(change.path, digest_of(change.before), after, change.backup, entries)

    def as_data(self) -> dict[str, Any]:
        """Return the change as JSON."""
        return {
            "path": str(self.path),
            "before": self.before,
            "after": self.after,
            "backup": None if self.backup is None else str(self.backup),
            "entries": [{"form": each.form, "path": each.path, "name": each.name} for each in self.entries],
        }

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> JournalChange:
        """Return the change that `as_data` gave."""
        entries = tuple(OurEntry(each["form"], tuple(each["path"]), each["name"]) for each in data["entries"])
        backup = None if data["backup"] is None else Path(data["backup"])
        return cls(Path(data["path"]), data["before"], data["after"], backup, entries)


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

        Raises `ChangedMeanwhile` and `OSError` for the first that cannot be made; those before it are made.
        """
        self.changes += [JournalChange.of(change, entries) for change, entries in changes]
        self._write()
        for change, _ in changes:
            make(change)

    def undo(self) -> list[str]:
        """Take every change back, the last one first; return what could not be taken back.

        Raises `OSError` where a file cannot be written; the journal still has what is left to do.
        """
        conflicts: list[str] = []
        while self.changes:
            problem = _undo(self.changes[-1])
            conflicts += [] if problem is None else [problem]
            self.changes.pop()
            self._write()
        return conflicts

    def _write(self) -> None:
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


def _undo(change: JournalChange) -> str | None:
    """Take one change back; return what is in the way, or None."""
    for draft in change.path.parent.glob(f"{glob.escape(draft_prefix(change.path))}*"):
        draft.unlink()  # what a kill left behind
    now = read_if_there(change.path)
    found = digest_of(now)
    if found == change.before:  # never made, or taken back already
        if change.backup is not None:  # whole, or cut short by a kill
            change.backup.unlink(missing_ok=True)
        return None
    if found != change.after:
        return None if now is None and change.before is None else _conflict(change, now)
    if change.before is None:
        change.path.unlink()
        return None
    if (
        change.backup is None
        or (kept := read_if_there(change.backup)) is None
        or digest_of(kept) != change.before
    ):
        return _conflict(change, now)
    write_file(change.path, kept, _PRIVATE)
    change.backup.unlink()
    return None


def _conflict(change: JournalChange, now: bytes | None) -> str:
    """Remove our entries from a file that has changed, and return what to tell."""
    kept = "" if change.backup is None else f"; it was {change.backup} before"
    if not change.entries:
        return f"{change.path} has changed since, and stays as it is{kept}"
    if now is None:
        return f"{change.path} is gone{kept}"
    try:
        text = decoded(now)
        for entry in change.entries:
            if entry.name in entries_at(parsed(text, entry.form), entry.path):
                text = edited(text, entry.form, entry.path, [entry.name], None)
    except NotReadable as error:
        return f"{change.path} has changed since, and our entry cannot be removed from it: {error}{kept}"
    write_file(change.path, text.encode(), _PRIVATE)
    return f"{change.path} has changed since; only our entry was removed from it{kept}"
