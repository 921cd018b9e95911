"""Which dialect a message is in: the message decides, not the transport. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from portbook.model import JSONObject

__all__ = ["DialectName", "choose_dialect"]


class DialectName(Enum):
    """A dialect of JSON-RPC messages; `/execute` has a route of its own, so nothing is chosen there."""

    ENVELOPE = "envelope"
    BARE = "bare"
    MCP = "mcp"


class _Recogniser(Protocol):
    def recognises(self, message: JSONObject) -> bool: ...


def choose_dialect(
    message: JSONObject, envelope: _Recogniser, bare: _Recogniser, is_mcp: Callable[[JSONObject], bool]
) -> DialectName | None:
    """Return the dialect of `message`; None for a notification that no dialect claims.

    1. The envelope dialect recognises it: its method starts with `mcp.`, or its tool with `mcp.tool:`.
    2. The bare dialect recognises it: its method is the name of an asset tool.
    3. It is MCP by its method, by its `_meta`, or because the connection has been initialised (`is_mcp`).
    4. It is a request: the bare dialect, which answers that there is no such tool.

    The first two come before MCP, so that they work on a connection that has been initialised.
    """
    if envelope.recognises(message):
        return DialectName.ENVELOPE
    if bare.recognises(message):
        return DialectName.BARE
    if is_mcp(message):
        return DialectName.MCP
    return DialectName.BARE if "id" in message else None
