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

from portbook.adopt.client_document import Entry, NotReadable, decoded, edited, entries_at, parsed
from portbook.adopt.file_change import (
    ChangedMeanwhile,
    FileChange,
    check_unchanged,
    digest_of,
    draft_prefix,
    folder_turn,
    make,
    read_if_there,
    write_file,
)
from portbook.exports.client_table import KeyPath, TextForm
from portbook.model import JSONObject

__all__ = ["AdoptionJournal", "JournalChange", "OurEntry", "settle_conflict"]

# `JournalChange`: one change of a file as the journal of adoptions has it.


@dataclass(frozen=True, slots=True)
class OurEntry:
    """An entry of ours in a client's file."""

    form: TextForm
    path: KeyPath
    name: str
    replaced: tuple[str, ...] = ()
    """The names of the entries in whose place it stands."""

    def as_data(self) -> dict[str, Any]:
        """Return the entry as JSON."""
        return {"form": self.form, "path": self.path, "name": self.name, "replaced": self.replaced}

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> OurEntry:
        """Return the entry that `as_data` gave; journals of earlier versions have no `replaced`."""
        return cls(data["form"], tuple(data["path"]), data["name"], tuple(data.get("replaced", ())))


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
            "entries": [each.as_data() for each in self.entries],
        }

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> JournalChange:
        """Return the change that `as_data` gave."""
        entries = tuple(map(OurEntry.of_data, data["entries"]))
        backup = None if data["backup"] is None else Path(data["backup"])
        return cls(Path(data["path"]), data["before"], data["after"], backup, entries)


# Undoing in a client's file that has changed since: our entry goes, and what it replaced comes back.
#
# Only names that are free are given back, with the values of the backup; all else stays as it is now.

_PRIVATE: Final = 0o600


@dataclass(slots=True)
class _Settled:
    """A text from which our entries are taken, one after the other."""

    text: str
    has_ours: bool = False
    given: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    """Servers that are not in the text as they were before."""

    def take_out(self, ours: OurEntry, before: dict[str, JSONObject]) -> None:
        """Put what an entry of ours replaced into its place. Raises `NotReadable` where it cannot go."""
        now = entries_at(parsed(self.text, ours.form), ours.path)
        lost = [name for name in ours.replaced if name not in before or now.get(name) != before[name]]
        if ours.name in now:
            self.has_ours = True
            free = [name for name in lost if name in before and (name not in now or name == ours.name)]
            given = self._replace(ours, [Entry(name, before[name]) for name in free])
            self.given += given
            lost = [name for name in lost if name not in given]
        self.lost += lost

    def _replace(self, ours: OurEntry, entries: list[Entry]) -> list[str]:
        """Replace our entry, or only remove it where that is all that can be done; return what was given."""
        try:
            self.text = edited(self.text, ours.form, ours.path, [ours.name], *entries)
        except NotReadable:
            if not entries:
                raise
            return self._replace(ours, [])
        return [each.name for each in entries]


def settle_conflict(change: JournalChange, now: bytes | None) -> str:
    """Take our entries out of a file that has changed, and return what to tell."""
    kept = "" if change.backup is None else f"; it was {change.backup} before"
    if not change.entries:
        return f"{change.path} has changed since, and stays as it is{kept}"
    if now is None:
        return f"{change.path} is gone{kept}"
    try:
        settled = _Settled(decoded(now))
        for ours in change.entries:
            settled.take_out(ours, _entries_before(change, ours))
    except NotReadable as error:
        return f"{change.path} has changed since, and our entry cannot be removed from it: {error}{kept}"
    if settled.has_ours:
        write_file(change.path, settled.text.encode(), _PRIVATE)
    return f"{change.path} has changed since; {_what_was_done(settled)}{_what_is_lost(settled, change)}{kept}"


def _entries_before(change: JournalChange, ours: OurEntry) -> dict[str, JSONObject]:
    """Return the entries of the backup at the place of ours; none where it is not the file that was kept."""
    kept = None if change.backup is None else read_if_there(change.backup)
    if kept is None or digest_of(kept) != change.before:
        return {}
    return entries_at(parsed(decoded(kept), ours.form), ours.path)


def _what_was_done(settled: _Settled) -> str:
    if settled.given:
        return f"our entry was replaced by what was there before: {', '.join(settled.given)}"
    return "only our entry was removed from it" if settled.has_ours else "our entry is not in it any more"


def _what_is_lost(settled: _Settled, change: JournalChange) -> str:
    if not settled.lost:
        return ""
    names = ", ".join(settled.lost)
    if change.backup is None or not change.backup.exists():
        return f"; not given back, because the backup is gone: {names}"
    return f"; not given back: {names}; to restore, copy from {change.backup}"


_NAME: Final = "adopted.json"


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
