"""The section of `portbook.lock` about fetched documents: their digests, by file.

    {"openapi": {"shop.json": {"url": "https://api.example.com/openapi.json", "sha256": "…"}}}

The file is meant for version control, so an address is written without its query, which may have a key in it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from portbook.model import JSON
from portbook.net.destinations import BadDestination, parse_url
from portbook.net.fetch import without_secrets
from portbook.schema.violation_wording import whole_pointer
from portbook.stores.lock_file import LockFile, LockSection, change_section

__all__ = ["DocumentLock", "LockedDocument"]

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SECTION: Final = "openapi"


@dataclass(frozen=True, slots=True)
class LockedDocument:
    """A document as it was fetched."""

    url: str
    """Without user info, query and fragment."""
    file: str
    """Relative to the folder of the lock."""
    sha256: str


@dataclass(frozen=True, slots=True)
class DocumentLock:
    """The fetched documents of one folder."""

    folder: Path
    documents: tuple[LockedDocument, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> DocumentLock:
        """Return the lock of a folder; without a file, an empty one.

        Raises `BadLock` where the file cannot be read.
        """
        section = LockFile.read(folder).section(_SECTION)
        return cls(folder, tuple(_entry(section, file, entry) for file, entry in section.entries.items()))

    def of_url(self, url: str) -> LockedDocument | None:
        """Return the document that was fetched from `url`, if one was; of several, the first by file."""
        wanted = without_secrets(url)
        return next((each for each in self.documents if each.url == wanted), None)

    def of_file(self, path: Path) -> LockedDocument | None:
        """Return the document that was fetched into `path`, if one was."""
        return next((each for each in self.documents if _same(self.folder / each.file, path)), None)

    def with_document(self, document: LockedDocument) -> DocumentLock:
        """Return this lock with one document added, or replaced where it has its file."""
        pinned = replace(document, url=without_secrets(document.url))
        others = (each for each in self.documents if each.file != pinned.file)
        return DocumentLock(self.folder, tuple(sorted((*others, pinned), key=lambda each: each.file)))

    def write(self) -> None:
        """Write the section into the lock of its folder.

        Raises `BadLock` where the file cannot be read by now, `OSError` where it cannot be written.
        """
        entries: dict[str, JSON] = {
            each.file: {"url": each.url, "sha256": each.sha256} for each in self.documents
        }
        change_section(self.folder, _SECTION, lambda _: entries)


def _entry(section: LockSection, file: str, entry: JSON) -> LockedDocument:
    place = whole_pointer((file,))
    fields = entry if isinstance(entry, dict) else {}
    url, digest = fields.get("url"), fields.get("sha256")
    if not isinstance(url, str) or not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise section.wrong(place, "must have a `url` and, as `sha256`, 64 hexadecimal digits")
    try:
        parse_url(url)
    except BadDestination:
        raise section.wrong(f"{place}/url", "must be an http or https address") from None
    return LockedDocument(url, file, digest)


def _same(one: Path, other: Path) -> bool:
    return os.path.normpath(one.absolute()) == os.path.normpath(other.absolute())
