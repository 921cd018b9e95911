"""One schema document made of several, so that references between files resolve without fetching.

The engine compiles one document whose references stay inside it. What a schema refers to by the name of
another one is put under its `$defs` as a resource of that name, and so is what those refer to. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urldefrag

from portbook.schema.references import Document

__all__ = ["bundle"]


def bundle(schema: Any, find: Callable[[str], Any]) -> Any:
    """Return `schema` with all that it refers to by name inside it; `find` returns what has a name, or None.

    What is not found is left as it is: the engine says which reference leads nowhere.
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
    """Return the names of the other documents that `schema` refers to."""
    nodes = Document(schema).nodes.values()
    own = cast("dict[str, Any]", schema).get("$id")
    names = (urldefrag(reference).url for node in nodes for _, reference in node.refs)
    return [name for name in dict.fromkeys(names) if name and name != own]
