"""The result of an API that does something and answers with nothing: null. Pure: no I/O.

Many APIs answer 204, or with an empty body, where their document has an object. To withhold that would not
undo what they did. The schema that such a tool announces allows null, so that no result breaks the schema. An
operation that only reads is held to its document: its result is what it was called for.
"""

from __future__ import annotations

from typing import Final

from portbook.model import JSONObject

__all__ = ["or_nothing"]

_NULL: Final[JSONObject] = {"type": "null"}


def or_nothing(schema: JSONObject | bool) -> JSONObject | bool:
    """Return a schema that allows null, too; definitions stay at its root, where references find them."""
    if isinstance(schema, bool) or schema == _NULL:
        return schema
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    alternatives = inner["anyOf"] if inner.keys() == {"anyOf"} else [inner]
    assert isinstance(alternatives, list)
    if _NULL in alternatives:
        return schema
    united: JSONObject = {"anyOf": [*alternatives, _NULL]}
    return {**united, "$defs": schema["$defs"]} if "$defs" in schema else united
