"""`portbook.lock`: the digests of documents that were fetched, beside the settings file.

It is JSON with sorted names, so that a change is one line in a review:

    {"openapi": {"shop.json": {"url": "https://api.example.com/openapi.json", "sha256": "…"}}}

The file is meant for version control, so an address is written without its query, which may have a key in it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from portbook.net.destinations import BadDestination, parse_url
from portbook.net.fetch import without_secrets

__all__ = ["LOCK_NAME", "BadLock", "DocumentLock", "LockedDocument", "write_atomically"]

LOCK_NAME: Final = "portbook.lock"

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SECTION: Final = "openapi"


class BadLock(ValueError):
    """A lock file that cannot be used; the message says what to do."""


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
        try:
            found: Any = json.loads((folder / LOCK_NAME).read_text("utf-8"))
        except FileNotFoundError:
            return cls(folder)
        except (OSError, ValueError, RecursionError):
            raise _bad() from None
        sections = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        entries = sections.get(_SECTION)
        if not isinstance(entries, dict):
            raise _bad()
        return cls(
            folder, tuple(_entry(file, entry) for file, entry in cast("dict[str, Any]", entries).items())
        )

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
        """Write the lock into its folder.

        Raises `OSError` where it cannot be written.
        """
        entries = {each.file: {"url": each.url, "sha256": each.sha256} for each in self.documents}
        text = json.dumps({_SECTION: entries}, indent=2, ensure_ascii=True) + "\n"
        write_atomically(self.folder / LOCK_NAME, text.encode("ascii"))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file as a whole: a reader sees the old one or the new one.

    Raises `OSError` where it cannot be written.
    """
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(descriptor, 0o644)
            file.flush()
            os.fsync(descriptor)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _entry(file: str, entry: Any) -> LockedDocument:
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    url, digest = fields.get("url"), fields.get("sha256")
    if not isinstance(url, str) or not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise _bad()
    try:
        parse_url(url)
    except BadDestination:
        raise _bad() from None
    return LockedDocument(url, file, digest)


def _bad() -> BadLock:
    return BadLock(
        f"{LOCK_NAME} is not as `portbook fetch` writes it; restore it, or remove it and fetch again"
    )


def _same(one: Path, other: Path) -> bool:
    return os.path.normpath(one.absolute()) == os.path.normpath(other.absolute())
