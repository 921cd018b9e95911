"""Which files the documents of a gateway are in, and whether they are as they were fetched.

`openapi` names files and addresses. Nothing is fetched at start: an address stands for the file into which
`portbook fetch` wrote its document; `fetch_document` does that.

The section of `portbook.lock` about fetched documents has their digests, by file:

    {"openapi": {"shop.json": {"url": "https://api.example.com/openapi.json", "sha256": "…"}}}

The file is meant for version control, so an address is written without its query, which may have a key in it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from portbook.apis.openapi.document_files import MAX_DOCUMENT_BYTES, Documents
from portbook.apis.openapi.operations_and_names import read_openapi
from portbook.apis.table_reader import Table
from portbook.model import JSON
from portbook.net.destinations import BadDestination, parse_url, without_secrets
from portbook.schema.violation_wording import whole_pointer
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME, LockFile, LockSection, change_section, write_atomically

if TYPE_CHECKING:
    from portbook.apis.gateway import Gateway

__all__ = [
    "DocumentLock",
    "DocumentSource",
    "LockedDocument",
    "NotFetched",
    "WantedDocument",
    "fetch_document",
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
    gateways: tuple[str, ...] = ()
    """The APIs that it was fetched for by their names."""


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

    def of_url(self, url: str, gateway: str = "") -> LockedDocument | None:
        """Return the document that was fetched from `url`, if one was.

        Of several, it is the one that was fetched for this gateway, or has the name that `portbook fetch`
        gives to files of the gateway or of the address; a copy to look at takes the place of none of these.
        """
        wanted = without_secrets(url)
        found = [each for each in self.documents if each.url == wanted]
        names = {_file_name(url): 1, gateway: 2}

        def rank(document: LockedDocument) -> int:
            if gateway in document.gateways:
                return 3
            path = Path(document.file)
            return names.get(path.stem, 0) if path.parent == Path() else 0

        return max(found, key=rank, default=None)

    def of_file(self, path: Path) -> LockedDocument | None:
        """Return the document that was fetched into `path`, if one was."""
        return next((each for each in self.documents if _same(self.folder / each.file, path)), None)

    def with_document(self, document: LockedDocument) -> DocumentLock:
        """Return this lock with one document added, or replaced where it has its file."""
        pinned = replace(document, url=without_secrets(document.url))
        others: list[LockedDocument] = []
        for each in self.documents:
            if each.url != pinned.url:
                others += [each] if each.file != pinned.file else []
            elif each.file == pinned.file:
                pinned = replace(pinned, gateways=tuple(sorted({*each.gateways, *pinned.gateways})))
            else:  # an API serves one file of an address
                left = tuple(name for name in each.gateways if name not in document.gateways)
                others.append(replace(each, gateways=left))
        return DocumentLock(self.folder, tuple(sorted((*others, pinned), key=lambda each: each.file)))

    def write(self) -> None:
        """Write the section into the lock of its folder.

        Raises `BadLock` where the file cannot be read by now, `OSError` where it cannot be written.
        """
        entries: dict[str, JSON] = {each.file: _members_of(each) for each in self.documents}
        change_section(self.folder, _SECTION, lambda _: entries)


def _members_of(document: LockedDocument) -> JSON:
    members: dict[str, JSON] = {"url": document.url, "sha256": document.sha256}
    return {**members, "for": list(document.gateways)} if document.gateways else members


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
    names = fields.get("for")
    gateways = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
    return LockedDocument(url, file, digest, gateways)


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
        locked = lock.of_url(name, gateway)
        if locked is None:
            remedy = f"run `portbook fetch {gateway}` once"
            raise table.wrong(
                "openapi",
                f"is an address, and nothing is fetched at start; {remedy}",
            )
        found.append(DocumentSource(name, folder / locked.file, locked))
    return found


# `portbook fetch`: a document is downloaded once, checked, written, and pinned by its digest.

# Long enough for a large document over a slow line; a person waits for it.
_TIMEOUT_S: Final = 60.0
_ACCEPT: Final = "application/json, application/yaml, */*;q=0.5"
# How HTML and XML begin, after a mark and spaces; no OpenAPI document does.
_PAGE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[!?A-Za-z]")
_YAML: Final = (".yaml", ".yml")


class NotFetched(Exception):
    """A document that was not fetched; the message says why."""


@dataclass(frozen=True, slots=True)
class WantedDocument:
    """A document to fetch."""

    url: str
    name: str = ""
    """What its file is called by default, without a suffix; empty where its address says it."""
    gateway: Gateway | None = None
    before: LockedDocument | None = None
    """What it was when it was last fetched, if it was."""


def fetch_document(
    wanted: WantedDocument,
    lock: DocumentLock,
    into: Path | None,
    networks: tuple[str, ...],
    *,
    is_forced: bool,
) -> tuple[DocumentLock, dict[str, Any]]:
    """Fetch, check, write and pin a document; return the lock and a report.

    Raises `CannotDownload`, `BadOpenAPI` or `NotFetched` where it cannot be used, and `OSError` where it
    cannot be written.
    """
    data = _downloaded(wanted, networks)
    _require_no_page(data)
    suffix = ".json" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else ".yaml"
    path = _path_for(wanted, lock, into, suffix, is_forced=is_forced)
    before = lock.of_file(path) if path.exists() else None
    operations = _count_operations(data, suffix)
    digest = hashlib.sha256(data).hexdigest()
    write_atomically(path, data)
    gateways = () if wanted.gateway is None else (wanted.gateway.name,)
    locked = LockedDocument(wanted.url, os.path.relpath(path, lock.folder), digest, gateways)
    lock = lock.with_document(locked)
    lock.write()
    report = {
        "url": without_secrets(wanted.url),
        "file": locked.file,
        "sha256": digest,
        "bytes": len(data),
        "operations": operations,
        "changed": before is None or before.sha256 != digest,
        "gateway": None if wanted.gateway is None else wanted.gateway.name,
    }
    return lock, report


def _require_no_page(data: bytes) -> None:
    """Require that a document is not a web page, which is what people find at an API's own address.

    Raises `NotFetched` where it is one.
    """
    if _PAGE.match(data) is not None:
        raise NotFetched(
            "this is a web page, not an OpenAPI document; give the address of the document itself; pages "
            "often link to it as openapi.json, openapi.yaml or swagger.json"
        )


def _downloaded(wanted: WantedDocument, networks: tuple[str, ...]) -> bytes:
    from portbook.net.document_download import download  # late: a start fetches nothing

    gateway = wanted.gateway
    proxy = None if gateway is None or gateway.proxy is None else parse_url(gateway.proxy).destination
    return asyncio.run(
        download(
            wanted.url,
            accept=_ACCEPT,
            limit=MAX_DOCUMENT_BYTES,
            timeout_s=_TIMEOUT_S,
            networks=networks,
            proxy=proxy,
            ca_file=None if gateway is None else gateway.ca_file,
        )
    )


def _path_for(
    wanted: WantedDocument, lock: DocumentLock, into: Path | None, suffix: str, *, is_forced: bool
) -> Path:
    """Return where a document is written: where the operator says, where it was before, or under its name.

    Raises `NotFetched` for a file with the wrong suffix, and for one that holds something else.
    """
    before = wanted.before
    name = wanted.name or _file_name(wanted.url)
    path = into or lock.folder / (name + suffix if before is None else before.file)
    if (path.suffix.lower() in _YAML) != (suffix == ".yaml"):
        raise NotFetched(f"it is {suffix[1:].upper()}; name a file that ends in {suffix} with --into")
    there = lock.of_file(path)
    is_known = there is not None and there.url == without_secrets(wanted.url)
    if path.exists() and not is_known and not is_forced:
        raise NotFetched(
            f"{path} exists and was not fetched from there; name a different file with --into, or use --force"
        )
    return path


def _count_operations(data: bytes, suffix: str) -> int:
    """Return how many operations a document has.

    Raises `BadOpenAPI` where it cannot be read.
    """
    import tempfile  # late, as above

    count = 0

    def is_wanted(_: object) -> bool:
        nonlocal count
        count += 1
        return False

    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / f"document{suffix}"
        draft.write_bytes(data)
        read_openapi(Documents(draft), is_wanted)
    return count


def _file_name(url: str) -> str:
    """Return a name for the file of a document: that in its address, without a suffix."""
    try:
        parts = urlsplit(url)
    except ValueError:  # which is told when it is fetched
        return ""
    stem = Path(parts.path).stem or parts.hostname or "openapi"
    return "".join(character if character.isalnum() or character in "-_" else "_" for character in stem)[:80]
