"""Portbook's members of `params._meta` in a JSON-RPC message, the same in every dialect. Pure: no I/O.

A member of the wrong type is ignored: `_meta` is shared with other software, and never makes a message
invalid.
"""

from __future__ import annotations

from typing import Final

from portbook.model import JSON, NO_CONTEXT, CallerContext, JSONObject
from portbook.text.named_tuple import NamedTuple

__all__ = ["MAX_WAIT_MS", "NO_CONTROLS", "RequestMeta", "context_of", "controls_of"]

_APPROVAL: Final = "portbook/approval_id"
_WAIT: Final = "portbook/wait_ms"
_SESSION: Final = "portbook/session_id"
_CORRELATION: Final = "portbook/correlation_id"
_STEP: Final = "portbook/agent_step"
_ATTEMPT: Final = "portbook/attempt"

_MEMBERS: Final = frozenset({_APPROVAL, _WAIT, _SESSION, _CORRELATION, _STEP, _ATTEMPT})

# Long enough for an operator who is watching; proxies would close a connection that waits longer.
MAX_WAIT_MS: Final = 600_000
_MAX_NUMBER: Final = 2**53
_MAX_TEXT: Final = 256


class RequestMeta(NamedTuple):
    """Portbook's members of a message's `_meta`."""

    approval: str | None = None
    wait_ms: int = 0
    session: str | None = None
    correlation: str | None = None
    step: int | None = None
    attempt: int | None = None


NO_CONTROLS: Final = RequestMeta()


def context_of(controls: RequestMeta) -> CallerContext:
    """Return the caller's claims about itself that these controls hold."""
    if controls is NO_CONTROLS:
        return NO_CONTEXT
    return CallerContext(
        step_id=1 if controls.step is None else controls.step,
        attempt=controls.attempt or 1,
        session=controls.session,
        correlation=controls.correlation,
    )


def controls_of(meta: JSONObject) -> RequestMeta:
    """Return Portbook's members of `meta`."""
    if _MEMBERS.isdisjoint(meta):
        return NO_CONTROLS  # nearly every call: `_meta` holds what MCP puts there
    return RequestMeta(
        _text(meta.get(_APPROVAL)),
        min(_number(meta.get(_WAIT)) or 0, MAX_WAIT_MS),
        _text(meta.get(_SESSION)),
        _text(meta.get(_CORRELATION)),
        _number(meta.get(_STEP)),
        _number(meta.get(_ATTEMPT)),
    )


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_TEXT else None


def _number(value: JSON) -> int | None:
    return value if type(value) is int and 0 <= value < _MAX_NUMBER else None
