"""`JournalChange`: one change of a file as the journal of adoptions has it. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portbook.adopt.file_change import FileChange, digest_of
from portbook.exports.client_table import KeyPath, TextForm

__all__ = ["JournalChange", "OurEntry"]


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
