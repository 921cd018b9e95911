"""Which files the documents of a gateway are in, and whether they are as they were fetched.

`openapi` names files and addresses. Nothing is fetched here: an address stands for the file into which
`portbook fetch` wrote its document.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.apis.document_lock import DocumentLock, LockedDocument
from portbook.apis.table_reader import Table
from portbook.net.fetch import without_secrets
from portbook.stores.lock_file import LOCK_NAME
from portbook.stores.store_errors import BadLock

__all__ = ["DocumentSource", "is_address", "named_documents", "read_sources"]

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
