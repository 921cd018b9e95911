"""`portbook fetch`: an OpenAPI document, fetched once and pinned by its digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from portbook.apis.fetched_documents import (
    DocumentLock,
    LockedDocument,
    NotFetched,
    WantedDocument,
    fetch_document,
    is_address,
    named_documents,
)
from portbook.apis.gateway import read_gateway
from portbook.apis.openapi.document_files import BadOpenAPI
from portbook.apis.table_reader import Table
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, stop_with
from portbook.escaping import escaped
from portbook.net.destinations import without_secrets
from portbook.net.document_download import CannotDownload
from portbook.settings import CONFIG_NAME, Settings
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME
from portbook.text.did_you_mean import did_you_mean

__all__ = ["command"]


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
    if into is not None and into.name in (LOCK_NAME, CONFIG_NAME if config is None else config.name):
        raise fail(f"{into} is a file of Portbook itself; name a different file with --into")
    fetched: list[dict[str, Any]] = []
    for each in wanted:
        try:
            lock, report = fetch_document(each, lock, into, settings.limits.allowed_networks, is_forced=force)
        except (NotFetched, CannotDownload, BadOpenAPI) as error:
            raise fail(f"{without_secrets(each.url)}: {error}") from None
        except OSError as error:
            raise stop_with(error) from None
        fetched.append(report)
    print_data(
        {"fetched": fetched}, [line for each in fetched for line in _in_words(each)], out, is_json=is_json
    )


def _wanted(source: str, settings: Settings, lock: DocumentLock) -> list[WantedDocument]:
    """Return the documents that `source` stands for.

    Raises `BadSettings` where the settings cannot be used, `Exit` where they name no such API.
    """
    if is_address(source):
        return [WantedDocument(source, before=lock.of_url(source))]
    if source not in settings.http_tables:
        known = sorted(settings.http_tables)
        hint = did_you_mean(source, known, f"the settings have {', '.join(known) or 'none'}")
        raise fail(f"there is no API {source!r} in the settings, and it is no http or https address; {hint}")
    table = Table(settings.http_tables[source], ("http", source), settings.complain)
    gateway = read_gateway(source, table, "", settings.folder)
    found = [each for name in named_documents(table) if (each := _address_of(name, source, settings, lock))]
    if not found:
        raise table.wrong("openapi", "names no address to fetch; set it to the URL of a document")
    names = [source, *(f"{source}_{number}" for number in range(2, len(found) + 1))]
    return [
        WantedDocument(url, name, gateway, before) for (url, before), name in zip(found, names, strict=True)
    ]


def _address_of(
    name: str, gateway: str, settings: Settings, lock: DocumentLock
) -> tuple[str, LockedDocument | None] | None:
    """Return the address of a document of the settings, and what it was; None for an operator's own file."""
    if is_address(name):
        return name, lock.of_url(name, gateway)
    locked = lock.of_file(settings.folder / name)
    return None if locked is None else (locked.url, locked)


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
