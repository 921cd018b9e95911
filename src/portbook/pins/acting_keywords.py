"""Keywords of a schema that allow and forbid nothing, but act on calls. Pure: no I/O.

A `default` is what clients and models send where nobody says otherwise. An extension may say what a program
does with an argument: `x-mcp-header` puts it into a header.
"""

from __future__ import annotations

from typing import Final, cast

from portbook.canonical import canonical_bytes
from portbook.model import JSONObject
from portbook.schema.references import Document, Path

__all__ = ["act_alike"]

_ACTING: Final = frozenset({"default", "readOnly", "writeOnly"})


def act_alike(one: JSONObject, other: JSONObject) -> bool:
    """Return whether two schemas have the same such keywords in the same places."""
    return _acting(one) == _acting(other)


def _acting(schema: JSONObject) -> dict[tuple[Path, str], bytes]:
    nodes = ((path, node.schema) for path, node in Document(schema).nodes.items())
    return {
        (path, keyword): canonical_bytes(value)
        for path, each in nodes
        if isinstance(each, dict)
        for keyword, value in cast("JSONObject", each).items()
        if keyword in _ACTING or keyword.startswith("x-")
    }
