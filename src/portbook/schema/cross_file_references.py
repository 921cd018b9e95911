"""Bundles several schema documents into one, so that references between files resolve without fetching.

The engine compiles one document whose references stay inside it. A document that a schema refers to by name
is put under its `$defs` as a resource of that name, and so are the documents it refers to. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urldefrag

from portbook.schema.references import Document

__all__ = ["bundle"]


def bundle(schema: Any, find: Callable[[str], Any]) -> Any:
    """Return `schema` with every document that it refers to inside it; `find` returns one by name, or None.

    A reference that is not found stays unchanged: the engine reports it.
    """
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    waiting: list[Any] = [schema]
    while waiting:
        for name in _names(waiting.pop()):
            other = find(name) if name not in found else None
            if isinstance(other, dict):
                found[name] = {**cast("dict[str, Any]", other), "$id": name}
                waiting.append(other)
    document = cast("dict[str, Any]", schema)
    return {**document, "$defs": {**document.get("$defs", {}), **found}} if found else document


def _names(schema: Any) -> list[str]:
    """Return the names of the documents that `schema` refers to, without its own."""
    nodes = Document(schema).nodes.values()
    own = cast("dict[str, Any]", schema).get("$id")
    names = (urldefrag(reference).url for node in nodes for _, reference in node.refs)
    return [name for name in dict.fromkeys(names) if name and name != own]
