"""The library as a list of things with an address that can be read: schemas, then examples. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from portbook.assets.library import Library
from portbook.canonical import json_bytes

__all__ = ["Entry", "entries"]


class Entry(NamedTuple):
    """One schema or example."""

    uri: str
    name: str
    mime_type: str
    read: Callable[[], bytes]
    """Returns it as JSON, as it was when the library was read."""


def entries(library: Library) -> Iterator[Entry]:
    """Yield the schemas and examples of a library, in the order of its listings."""
    for schema in library.schemas:
        uri = f"portbook://schemas/{quote(schema.name)}"
        yield Entry(uri, schema.name, "application/schema+json", _reader(schema.document))
    for example in library.examples:
        uri = f"portbook://examples/{quote(example.path.lstrip('/'))}"
        yield Entry(uri, example.path, "application/json", _reader(example.document))


def _reader(document: object) -> Callable[[], bytes]:
    return lambda: json_bytes(document)
