"""Headers that may be sent once only: a proxy and this server could disagree about which one counts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from portbook.errors import Reason, Refused

__all__ = ["refuse_repeated"]

# The headers that a route, a dialect or the connection reads one value of.
_SINGULAR: Final = frozenset(
    {
        b"access-control-request-method",
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"last-event-id",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"origin",
        b"transfer-encoding",
        b"x-session-id",
    }
)


def refuse_repeated(names: Sequence[bytes]) -> Refused | None:
    """Return why a request with these headers is refused, None if each is there as often as it may be."""
    repeated = next((name for name in names if name in _SINGULAR and names.count(name) > 1), None)
    if repeated is None:
        return None
    hint = f"The header {repeated.decode()} may be sent once only."
    return Refused(Reason.REPEATED_HEADER, details={"hint": hint})
