"""What HTTP headers must say of a message of the revisions without a handshake. Pure: no I/O.

Proxies route and limit by headers, so these may say nothing that the body does not:

- `MCP-Protocol-Version` is the revision in `_meta`, `Mcp-Method` the method.
- `Mcp-Name` is what is called: a tool's or prompt's name, a resource's address, a task's id.
- `Mcp-Param-NAME` is the argument that the tool's schema marks with `x-mcp-header: NAME`.

Header names are of either case, values are not. A value that a header cannot hold is written in base64,
between `=?base64?` and `?=`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject

__all__ = ["VERSION", "marked_params", "mismatch", "refuse_headers", "refuse_params"]

VERSION: Final = "mcp-protocol-version"
_METHOD: Final = "mcp-method"
_NAME: Final = "mcp-name"
_PARAM: Final = "mcp-param-"

# The member of the params that a method's `Mcp-Name` repeats.
_NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

_BEFORE: Final = "=?base64?"
_AFTER: Final = "?="


def refuse_headers(headers: Mapping[str, str], message: JSONObject, revision: JSON) -> Refused | None:
    """Return the refusal of a message whose standard headers do not say what it says, or None.

    `revision` is the one that its `_meta` names.
    """
    method, params = message.get("method"), message.get("params")
    if headers.get(VERSION, "").strip() != revision:
        return mismatch("MCP-Protocol-Version", "must be the revision that _meta names")
    if headers.get(_METHOD, "").strip() != method:
        return mismatch("Mcp-Method", "must be the method")
    member = _NAMED_BY.get(method) if isinstance(method, str) else None
    if member is None or not isinstance(params, dict) or not isinstance(params.get(member), str):
        return None
    if _NAME not in headers or _decoded(headers[_NAME]) != params[member]:
        return mismatch("Mcp-Name", f"must be params.{member}")
    return None


def refuse_params(
    headers: Mapping[str, str], marked: Mapping[str, str], arguments: JSONObject
) -> Refused | None:
    """Return the refusal of a call whose `Mcp-Param-` headers are not its marked arguments, or None."""
    for argument, suffix in marked.items():
        sent = headers.get(_PARAM + suffix.lower())
        value = arguments.get(argument)
        wanted = _as_text(value)
        if (sent is None) != (wanted is None) or (sent is not None and _decoded(sent) != wanted):
            return mismatch(f"Mcp-Param-{suffix}", f"must be the argument {argument}")
    return None


def marked_params(input_schema: JSONObject) -> dict[str, str]:
    """Return the arguments that a tool's schema wants in headers, with the end of each header's name."""
    properties = input_schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: suffix
        for name, schema in properties.items()
        if isinstance(schema, dict) and isinstance(suffix := schema.get("x-mcp-header"), str)
    }


def _as_text(value: JSON) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    return None


def _decoded(text: str) -> str | None:
    """Return what a header's value stands for; None where it is no valid base64."""
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
