"""Undoing in a client's file that has changed since: our entry goes, and what it replaced comes back.

Only names that are free are given back, with the values of the backup; all else stays as it is now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from portbook.adopt.client_document import Entry, NotReadable, decoded, edited, entries_at, parsed
from portbook.adopt.file_change import digest_of, read_if_there, write_file
from portbook.adopt.journal_change import JournalChange, OurEntry
from portbook.model import JSONObject

__all__ = ["settle_conflict"]

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
