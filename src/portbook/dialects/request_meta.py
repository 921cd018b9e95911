"""What a JSON-RPC message may tell us beside its call, in `params._meta`: one vocabulary for every dialect.

Pure: no I/O. A member of the wrong type is as good as none: `_meta` is shared with others, and never decides
whether a message is well formed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from portbook.model import JSON, JSONObject

__all__ = ["MAX_WAIT_MS", "NO_CONTROLS", "RequestMeta", "controls_of"]

_APPROVAL: Final = "portbook/approval_id"
_WAIT: Final = "portbook/wait_ms"
_SESSION: Final = "portbook/session_id"
_CORRELATION: Final = "portbook/correlation_id"
_STEP: Final = "portbook/agent_step"
_ATTEMPT: Final = "portbook/attempt"

# Longer than people take who watch; a connection held open any longer would break on its way.
MAX_WAIT_MS: Final = 600_000
_MAX_NUMBER: Final = 2**53
_MAX_TEXT: Final = 256


class RequestMeta(NamedTuple):
    """What a message says about its call."""

    approval: str | None = None
    wait_ms: int = 0
    session: str | None = None
    correlation: str | None = None
    step: int | None = None
    attempt: int | None = None


NO_CONTROLS: Final = RequestMeta()


def controls_of(meta: JSONObject) -> RequestMeta:
    """Return what `meta` says."""
    if not meta:
        return NO_CONTROLS
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
