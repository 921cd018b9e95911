"""Which files the documents of a gateway are in, and whether they are as they were fetched.

`openapi` names files and addresses. Nothing is fetched here: an address stands for the file into which
`portbook fetch` wrote its document.

The section of `portbook.lock` about fetched documents has their digests, by file:

    {"openapi": {"shop.json": {"url": "https://api.example.com/openapi.json", "sha256": "…"}}}

The file is meant for version control, so an address is written without its query, which may have a key in it.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from portbook.apis.table_reader import Table
from portbook.model import JSON
from portbook.net.destinations import BadDestination, parse_url, without_secrets
from portbook.schema.violation_wording import whole_pointer
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME, LockFile, LockSection, change_section

__all__ = [
    "DocumentLock",
    "DocumentSource",
    "LockedDocument",
    "is_address",
    "named_documents",
    "read_sources",
]


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


_ADDRESS: Final = re.compile(r"(?i)https?://")


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """One document of a gateway."""

    name: str
    """As the settings have it: a file or an address."""
    path: Path
    locked: LockedDocument | None = None
    """What it was when it was fetched, if it was fetched."""

    def problem_of(self, data: bytes) -> str | None:
        """Return why these bytes are not the document, or None where they are."""
        if self.locked is None or self.locked.sha256 == hashlib.sha256(data).hexdigest():
            return None
        return (
            f"{self.locked.file} has changed since it was fetched: its digest is not the one in {LOCK_NAME}; "
            "restore it, run `portbook fetch` again, or remove its entry there if the change is yours"
        )


def is_address(name: str) -> bool:
    """Return whether a document is named by an address, not by a file."""
    return _ADDRESS.match(name) is not None


def named_documents(table: Table) -> tuple[str, ...]:
    """Return the files and addresses that `openapi` of a gateway names; none where it is missing.

    Raises the table's exception where it is neither a string nor a list of strings.
    """
    value = table.value("openapi")
    if value is None:
        return ()
    names = table.texts("openapi") if isinstance(value, list) else (table.text("openapi"),)
    found = tuple(name for name in names or () if name)
    if not found:
        raise table.wrong("openapi", "must name a document, or a list of documents")
    if len(set(found)) < len(found):
        raise table.wrong("openapi", "names a document twice; keep one")
    if len({without_secrets(name) for name in found}) < len(found):
        # The lock has addresses without their queries.
        raise table.wrong(
            "openapi",
            "names addresses that differ only in their queries; fetch each --into a file, and name it",
        )
    return found


def read_sources(table: Table, gateway: str, folder: Path) -> list[DocumentSource]:
    """Return the documents of a gateway; files are relative to `folder`, which also has the lock.

    Raises the table's exception for an address that was not fetched, and for a lock that cannot be used.
    """
    names = named_documents(table)
    if not names:
        return []
    try:
        lock = DocumentLock.read(folder)
    except BadLock as error:
        raise table.wrong("openapi", f"cannot be imported: {error}") from None
    found: list[DocumentSource] = []
    for name in names:
        if not is_address(name):
            found.append(DocumentSource(name, folder / name, lock.of_file(folder / name)))
            continue
        locked = lock.of_url(name)
        if locked is None:
            remedy = f"run `portbook fetch {gateway}` once"
            raise table.wrong(
                "openapi",
                f"is an address, and nothing is fetched at start; {remedy}",
            )
        found.append(DocumentSource(name, folder / locked.file, locked))
    return found
