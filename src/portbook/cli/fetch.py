"""`portbook fetch`: an OpenAPI document, fetched once and pinned by its digest."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from portbook.apis.fetched_documents import DocumentLock, LockedDocument, is_address, named_documents
from portbook.apis.gateway import Gateway, read_gateway
from portbook.apis.openapi.document_files import MAX_DOCUMENT_BYTES, BadOpenAPI, Documents
from portbook.apis.openapi.operations_and_names import read_openapi
from portbook.apis.table_reader import Table
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, stop_with
from portbook.escaping import escaped
from portbook.net.destinations import parse_url, without_secrets
from portbook.net.document_download import CannotDownload, download
from portbook.settings import CONFIG_NAME, Settings
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME, write_atomically
from portbook.text.did_you_mean import did_you_mean

__all__ = ["command"]

# Long enough for a large document over a slow line; a person waits for it.
_TIMEOUT_S: Final = 60.0
_ACCEPT: Final = "application/json, application/yaml, */*;q=0.5"
# How HTML and XML begin, after a mark and spaces; no OpenAPI document does.
_PAGE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[!?A-Za-z]")
_YAML: Final = (".yaml", ".yml")


class _CannotFetch(Exception):
    """A document that was not fetched; the message says why."""


@dataclass(frozen=True, slots=True)
class _WantedDocument:
    """A document to fetch."""

    url: str
    name: str = ""
    """What its file is called by default, without a suffix; empty where its address says it."""
    gateway: Gateway | None = None
    before: LockedDocument | None = None
    """What it was when it was last fetched, if it was."""


@click.command("fetch")
@click.argument("source", metavar="URL|NAME")
@click.option(
    "--into",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write.  [default: NAME.json or NAME.yaml beside the settings file]",
)
@click.option("--force", is_flag=True, help="Overwrite a file that was not fetched from this address.")
@json_option()
@config_option
def command(source: str, *, into: Path | None, force: bool, is_json: bool, config: Path | None) -> None:
    """Fetch an OpenAPI document, check that it can be read, and pin it by its digest.

    URL is the address of a document. NAME is an API of the settings, NAME in [http.NAME], whose `openapi` is
    an address. The digest is written to portbook.lock beside the settings file: `portbook serve` fetches
    nothing, and refuses a fetched document that has changed.
    """
    out = claim_stdout()
    try:
        settings = settings_from(config)
        lock = DocumentLock.read(settings.folder)
        wanted = _wanted(source, settings, lock)
    except (*START_ERRORS, BadLock) as error:
        raise stop_with(error) from None
    if into is not None and len(wanted) > 1:
        raise click.UsageError(f"{source} has several documents; fetch each by its address to use --into")
    fetched: list[dict[str, Any]] = []
    for each in wanted:
        try:
            lock, report = _fetch(each, lock, into, settings, is_forced=force)
        except (_CannotFetch, CannotDownload, BadOpenAPI) as error:
            raise fail(f"{without_secrets(each.url)}: {error}") from None
        except OSError as error:
            raise stop_with(error) from None
        fetched.append(report)
    print_data(
        {"fetched": fetched}, [line for each in fetched for line in _in_words(each)], out, is_json=is_json
    )


def _wanted(source: str, settings: Settings, lock: DocumentLock) -> list[_WantedDocument]:
    """Return the documents that `source` stands for.

    Raises `BadSettings` where the settings cannot be used, `Exit` where they name no such API.
    """
    if is_address(source):
        return [_WantedDocument(source, before=lock.of_url(source))]
    if source not in settings.http_tables:
        known = sorted(settings.http_tables)
        hint = did_you_mean(source, known, f"the settings have {', '.join(known) or 'none'}")
        raise fail(f"there is no API {source!r} in the settings, and it is no http or https address; {hint}")
    table = Table(settings.http_tables[source], ("http", source), settings.complain)
    gateway = read_gateway(source, table, "", settings.folder)
    found = [each for name in named_documents(table) if (each := _address_of(name, settings, lock))]
    if not found:
        raise table.wrong("openapi", "names no address to fetch; set it to the URL of a document")
    names = [source, *(f"{source}_{number}" for number in range(2, len(found) + 1))]
    return [
        _WantedDocument(url, name, gateway, before) for (url, before), name in zip(found, names, strict=True)
    ]


def _address_of(
    name: str, settings: Settings, lock: DocumentLock
) -> tuple[str, LockedDocument | None] | None:
    """Return the address of a document of the settings, and what it was; None for an operator's own file."""
    if is_address(name):
        return name, lock.of_url(name)
    locked = lock.of_file(settings.folder / name)
    return None if locked is None else (locked.url, locked)


def _fetch(
    wanted: _WantedDocument, lock: DocumentLock, into: Path | None, settings: Settings, *, is_forced: bool
) -> tuple[DocumentLock, dict[str, Any]]:
    """Fetch, check, write and pin a document; return the lock and a report.

    Raises `CannotDownload`, `BadOpenAPI` or `_CannotFetch` where it cannot be used, and `OSError` where it
    cannot be written.
    """
    data = _downloaded(wanted, settings)
    _require_no_page(data)
    suffix = ".json" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else ".yaml"
    path = _path_for(wanted, lock, into, suffix, is_forced=is_forced)
    before = lock.of_file(path) if path.exists() else None
    operations = _count_operations(data, suffix)
    digest = hashlib.sha256(data).hexdigest()
    write_atomically(path, data)
    locked = LockedDocument(wanted.url, os.path.relpath(path, lock.folder), digest)
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

    Raises `_CannotFetch` where it is one.
    """
    if _PAGE.match(data) is not None:
        raise _CannotFetch(
            "this is a web page, not an OpenAPI document; give the address of the document itself; pages "
            "often link to it as openapi.json, openapi.yaml or swagger.json"
        )


def _downloaded(wanted: _WantedDocument, settings: Settings) -> bytes:
    gateway = wanted.gateway
    proxy = None if gateway is None or gateway.proxy is None else parse_url(gateway.proxy).destination
    return asyncio.run(
        download(
            wanted.url,
            accept=_ACCEPT,
            limit=MAX_DOCUMENT_BYTES,
            timeout_s=_TIMEOUT_S,
            networks=settings.limits.allowed_networks,
            proxy=proxy,
            ca_file=None if gateway is None else gateway.ca_file,
        )
    )


def _path_for(
    wanted: _WantedDocument, lock: DocumentLock, into: Path | None, suffix: str, *, is_forced: bool
) -> Path:
    """Return where a document is written: where the operator says, where it was before, or under its name.

    Raises `_CannotFetch` for a file with the wrong suffix, and for one that holds something else.
    """
    before = wanted.before
    name = wanted.name or _file_name(wanted.url)
    path = into or lock.folder / (name + suffix if before is None else before.file)
    if (path.suffix.lower() in _YAML) != (suffix == ".yaml"):
        raise _CannotFetch(f"it is {suffix[1:].upper()}; name a file that ends in {suffix} with --into")
    there = lock.of_file(path)
    is_known = there is not None and there.url == without_secrets(wanted.url)
    if path.exists() and not is_known and not is_forced:
        raise _CannotFetch(
            f"{path} exists and was not fetched from there; name a different file with --into, or use --force"
        )
    return path


def _count_operations(data: bytes, suffix: str) -> int:
    """Return how many operations a document has.

    Raises `BadOpenAPI` where it cannot be read.
    """
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
    parts = urlsplit(url)
    stem = Path(parts.path).stem or parts.hostname or "openapi"
    return "".join(character if character.isalnum() or character in "-_" else "_" for character in stem)[:80]


def _in_words(report: dict[str, Any]) -> list[str]:
    verb = "fetched" if report["changed"] else "unchanged"
    lines = [
        f"{verb}: {escaped(report['file'])} ({report['bytes']:,} bytes, {report['operations']:,} operations)",
        f"sha256: {report['sha256']}, pinned in {LOCK_NAME}",
    ]
    if report["gateway"] is None:
        lines += [
            f"To serve it, add to {CONFIG_NAME}:",
            "[http.NAME]",
            f'openapi = "{escaped(report["file"])}"',
        ]
    return lines
