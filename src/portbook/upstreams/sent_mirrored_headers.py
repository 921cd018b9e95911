"""HTTP headers that repeat parts of a message, in the revisions without a handshake. Pure: no I/O.

The other side of `protocol/mirrored_headers.py`, which checks them on arrival.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Final

from portbook.model import JSON, JSONObject
from portbook.protocol.mirrored_headers import NAMED_BY, Mark

__all__ = ["mirrored_headers"]


def mirrored_headers(message: JSONObject, marks: Iterable[Mark]) -> Iterator[tuple[str, str]]:
    """Yield the headers of a request; `marks` are the arguments that its tool wants repeated."""
    method, params = str(message.get("method")), message.get("params")
    yield "Mcp-Method", method
    if not isinstance(params, dict):
        return
    named = params.get(NAMED_BY.get(method, ""))
    if isinstance(named, str):
        yield "Mcp-Name", _encoded(named)
    arguments = params.get("arguments")
    for mark in marks:
        value = _at(arguments, mark.path)
        if isinstance(value, bool):
            yield f"Mcp-Param-{mark.suffix}", "true" if value else "false"
        elif isinstance(value, str | int | float):
            whole = int(value) if mark.is_integer and isinstance(value, float) else value
            yield f"Mcp-Param-{mark.suffix}", _encoded(str(whole))


_BEFORE: Final = "=?base64?"
_AFTER: Final = "?="


def _encoded(text: str) -> str:
    """Return a value as a header can hold it."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith(_BEFORE)
    return text if is_plain else _BEFORE + base64.b64encode(text.encode()).decode() + _AFTER


def _at(arguments: JSON, path: tuple[str, ...]) -> JSON:
    value = arguments
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
