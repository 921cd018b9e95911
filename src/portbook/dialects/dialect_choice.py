"""Which dialect a message is in: the message decides, not the transport. Pure: no I/O."""

from __future__ import annotations

from enum import Enum
from typing import Final

from portbook.model import JSONObject
from portbook.protocol.negotiation import META_REVISION
from portbook.tools.tool_names import TOOL_PREFIX

__all__ = ["DialectName", "choose_dialect"]

_ENVELOPE_METHODS: Final = "mcp."

_NOTHING: Final[JSONObject] = {}  # never written to

# The methods of MCP that can come first and have no slash in their names.
_FIRST: Final = ("initialize", "ping")


class DialectName(Enum):
    """A dialect of JSON-RPC messages; `/execute` has a route of its own, so nothing is chosen there."""

    ENVELOPE = "envelope"
    BARE = "bare"
    MCP = "mcp"


# Taken from here by name: to find a member of an enumeration takes longer than to compare it.
_ENVELOPE: Final = DialectName.ENVELOPE
_BARE: Final = DialectName.BARE
_MCP: Final = DialectName.MCP


def choose_dialect(
    message: JSONObject, asset_tools: frozenset[str], is_initialised: bool = False
) -> DialectName | None:
    """Return the dialect of `message`; None for a notification that no dialect claims.

    1. Envelope: its method starts with `mcp.`, or its tool with `mcp.tool:`, even if it has no method.
    2. Bare: its method is the name of one of the `asset_tools`.
    3. MCP: by its method or because it has none, by its `_meta`, or if the connection `is_initialised`.
    4. It is a request: bare, which answers that there is no such tool.

    The first two come before MCP, so that they work on a connection that has been initialised.
    """
    method, params = message.get("method"), message.get("params")
    if type(params) is not dict:
        params = _NOTHING
    if type(method) is not str:
        method = None
    if "tool" in params and isinstance(tool := params["tool"], str) and tool.startswith(TOOL_PREFIX):
        return _ENVELOPE
    if method is None:
        return _MCP
    if method.startswith(_ENVELOPE_METHODS):
        return _ENVELOPE
    if method in asset_tools:
        return _BARE
    if is_initialised or "/" in method or method in _FIRST:
        return _MCP
    meta = params.get("_meta")
    if isinstance(meta, dict) and META_REVISION in meta:
        return _MCP
    return _BARE if "id" in message else None
