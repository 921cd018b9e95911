"""Files and folders that settings name and that cannot be used, found before a call needs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from portbook.settings import Settings
from portbook.stores.errors import StoreError

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["file_doubts", "problem_of_store"]


def file_doubts(settings: Settings, store: StorePort) -> Iterator[str]:
    """Yield what cannot be used, each with the place of its setting and what comes of it."""
    if (problem := problem_of_store(store)) is not None:
        key = "path" if settings.store_url is None else "url"
        yield f"{settings.opening('store', key)}store.{key}: {problem}; until then, no call is approved"
    if settings.schema_root is not None and not settings.schema_root.is_dir():
        place = settings.position_of("schemas", "root")
        yield f"{place}: schemas.root is not a folder; the contracts of Portbook itself are used"
    for name, table in settings.http_tables.items():
        files = table.get("files")
        if isinstance(files, str) and not (settings.folder / files).is_dir():
            place = settings.position_of("http", name, "files")
            yield f"{place}: http.{name}.files is not a folder; calls that name a file are refused"


def problem_of_store(store: StorePort) -> str | None:
    """Return why a store that is there cannot be read; None where it can, or where there is none yet."""
    try:
        store.read(lambda _: None, None)
    except StoreError as error:
        return str(error)
    return None
