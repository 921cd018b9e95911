"""W3C Trace Context: the `traceparent` that a sender gives, and the one that we send on. Pure: no I/O."""

from __future__ import annotations

import re

from portbook.model import Identity
from portbook.text.late_pattern import late_pattern
from portbook.text.sha256 import sha256

__all__ = ["is_trace_id", "trace_of", "traceparent_of"]

_TRACE_DIGITS = 32
_ALL_ZERO = "0" * _TRACE_DIGITS
_HEXADECIMAL = b"0123456789abcdef"


def is_trace_id(text: str) -> bool:
    """Return whether `text` is a W3C trace id: 32 hexadecimal digits in lower case, not all zero."""
    if len(text) != _TRACE_DIGITS or text == _ALL_ZERO:
        return False
    return not text.encode("utf-8", "replace").translate(None, _HEXADECIMAL)


def traceparent_of(identity: Identity) -> str:
    """Return the W3C `traceparent` of this call; its span id is the first half of the span's UUID.

    A trace id that is not in W3C form is hashed into one.
    """
    trace = identity.trace
    if not is_trace_id(trace):
        trace = trace.replace("-", "").lower()
        if not is_trace_id(trace):
            trace = sha256(identity.trace.encode()).hexdigest()[:_TRACE_DIGITS]
    return f"00-{trace}-{identity.span[:16]}-01"


_TRACEPARENT = late_pattern(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.ASCII)


def trace_of(traceparent: object) -> str | None:
    """Return the trace id of a W3C `traceparent`, or None where it is not a valid one."""
    if not isinstance(traceparent, str):
        return None
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None:
        return None
    version, trace, parent, rest = match.groups()
    # W3C Trace Context 3.2.2: version ff is forbidden, version 00 ends here, all-zero ids are invalid.
    if version == "ff" or (version == "00" and rest) or not trace.strip("0") or not parent.strip("0"):
        return None
    return trace
