"""Compares HTTP headers with the message, in the revisions without a handshake. Pure: no I/O.

Proxies route and limit by headers, so headers must match the body:

- `MCP-Protocol-Version` is the revision in `_meta`, `Mcp-Method` the method.
- `Mcp-Name` is the called entry: a tool's or prompt's name, a resource's URI, a task's id.
- `Mcp-Param-NAME` is the argument that the tool's schema marks with `x-mcp-header: NAME`. Integers are
  compared as numbers, so `42.0` equals `42`.

Header names are case-insensitive, values are not. A value that a header cannot hold is written in base64,
between `=?base64?` and `?=`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "NAMED_BY",
    "SESSION",
    "VERSION",
    "BadMark",
    "Mark",
    "are_mirrored",
    "marked_params",
    "mismatch",
    "refuse_headers",
    "refuse_params",
]

VERSION: Final = "mcp-protocol-version"
SESSION: Final = "mcp-session-id"
_METHOD: Final = "mcp-method"
_NAME: Final = "mcp-name"
_PARAM: Final = "mcp-param-"

# The member of the params that `Mcp-Name` repeats, by method.
NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

_BEFORE: Final = "=?base64?"
_AFTER: Final = "?="

_MARK: Final = "x-mcp-header"
_TOKEN: Final = late_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
_WHOLE: Final = late_pattern(r"(-?[0-9]{1,400})(?:\.0+)?", re.ASCII)

# Types with one spelling in a header; languages differ in how they write other numbers.
_TYPES: Final = ("string", "integer", "boolean")

# Keywords that hold subschemas, beside `properties`; keywords that hold data are not among them.
_ONE: Final = (
    *("items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems"),
    *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
)
_SEVERAL: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("patternProperties", "dependentSchemas", "$defs", "definitions")


class BadMark(ValueError):
    """An invalid `x-mcp-header`; the message gives the place, the reason and the fix."""


class Mark(NamedTuple):
    """An argument that clients repeat in a header."""

    path: tuple[str, ...]
    """The names of the members that lead to it."""
    suffix: str
    """The end of the header's name."""
    is_integer: bool


def are_mirrored(headers: Mapping[str, str], method: str, params: JSON, revision: str) -> bool:
    """Return whether the standard headers of a message are, as they stand, what they have to be.

    Where they are not, they may still match once they are decoded: `refuse_headers` decides.
    """
    if headers.get(VERSION) != revision or headers.get(_METHOD) != method:
        return False
    member = NAMED_BY.get(method)
    if member is None:
        return True
    named = params.get(member) if isinstance(params, dict) else None
    return isinstance(named, str) and headers.get(_NAME) == named and not named.startswith(_BEFORE)


def refuse_headers(headers: Mapping[str, str], message: JSONObject, revision: JSON) -> Refused | None:
    """Return the refusal of a message that its standard headers do not match, or None.

    `revision` is the one in its `_meta`. Headers come without white space around them.
    """
    method, params = message.get("method"), message.get("params")
    if headers.get(VERSION) != revision:
        return mismatch("MCP-Protocol-Version", "must equal the revision in _meta")
    if headers.get(_METHOD) != method or not isinstance(method, str):
        return mismatch("Mcp-Method", "must equal the method")
    member = NAMED_BY.get(method)
    if member is None or not isinstance(params, dict) or not isinstance(named := params.get(member), str):
        return None
    said = headers.get(_NAME)
    if said is None or _decoded(said) != named:
        return mismatch("Mcp-Name", f"must equal params.{member}")
    return None


def refuse_params(
    headers: Mapping[str, str], marked: Iterable[Mark], arguments: JSONObject
) -> Refused | None:
    """Return the refusal of a call whose `Mcp-Param-` headers differ from its marked arguments, or None."""
    for mark in marked:
        sent = headers.get(_PARAM + mark.suffix.lower())
        value = _at(arguments, mark.path)
        if sent is None and value is None:
            continue
        if sent is None or not _equals(sent, value, is_integer=mark.is_integer):
            return mismatch(f"Mcp-Param-{mark.suffix}", f"must equal the argument {'.'.join(mark.path)}")
    return None


def marked_params(input_schema: JSONObject) -> tuple[Mark, ...]:
    """Return the arguments that a tool's schema marks for headers.

    Raises `BadMark` where a mark would make clients drop the tool:

    1. It does not belong to one argument: the root, a definition, an item, an alternative.
    2. It is not an HTTP token.
    3. Its property is not a string, an integer or a boolean.
    4. It differs from an earlier mark only in case.
    """
    marked: dict[str, Mark] = {}
    for pointer, path, schema in _schemas(input_schema):
        if _MARK not in schema:
            continue
        suffix, kind = schema[_MARK], schema.get("type")
        if not path:
            raise BadMark(
                f"{pointer or '(root)'}: {_MARK} must be on a property, reached through properties only"
            )
        if not isinstance(suffix, str) or not _TOKEN.fullmatch(suffix):
            raise BadMark(f"{pointer}: {_MARK} must be a header's name: letters, digits and '-'")
        if kind not in _TYPES:
            raise BadMark(f"{pointer}: {_MARK} must be on a property whose type is {', '.join(_TYPES)}")
        if suffix.lower() in marked:
            raise BadMark(f"{pointer}: {_MARK} {suffix} is used by two properties; use each name once")
        marked[suffix.lower()] = Mark(path, suffix, kind == "integer")
    return tuple(marked.values())


def _schemas(root: JSONObject) -> Iterator[tuple[str, tuple[str, ...] | None, JSONObject]]:
    """Yield each subschema with its pointer, and the path of its argument or None where it has none."""
    waiting: list[tuple[str, tuple[str, ...] | None, JSON]] = [("", (), root)]
    while waiting:
        pointer, path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield pointer, path, schema
        for keyword, value in schema.items():
            below = f"{pointer}/{keyword}"
            if keyword in _ONE:
                waiting.append((below, None, value))
            elif keyword in _SEVERAL and isinstance(value, list):
                waiting.extend((f"{below}/{at}", None, each) for at, each in enumerate(value))
            elif keyword in (*_NAMED, "properties") and isinstance(value, dict):
                leading = path if keyword == "properties" else None
                for name, each in value.items():
                    place = f"{below}/{name.replace('~', '~0').replace('/', '~1')}"
                    waiting.append((place, None if leading is None else (*leading, name), each))


def _at(arguments: JSONObject, path: tuple[str, ...]) -> JSON:
    value: JSON = arguments
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _equals(sent: str, value: JSON, *, is_integer: bool) -> bool:
    """Return whether a header equals an argument."""
    said = _decoded(sent)
    if said is None or value is None:
        return False
    if is_integer and isinstance(value, int | float) and not isinstance(value, bool):
        whole = _WHOLE.fullmatch(said)
        return whole is not None and int(whole[1]) == value
    return said == _as_text(value)


def _as_text(value: JSON) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def _decoded(text: str) -> str | None:
    """Return the decoded value of a header; None where its base64 is not valid."""
    text = text.strip()
    if not (text.startswith(_BEFORE) and text.endswith(_AFTER)):
        return text
    try:
        return base64.b64decode(text[len(_BEFORE) : -len(_AFTER)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def mismatch(header: str, message: str) -> Refused:
    """Return the refusal of a message whose `header` is wrong."""
    finding = Finding("", f"{header} {message}", "header", "")
    return Refused(Reason.HEADER_MISMATCH, (finding,), details={"header": header})
