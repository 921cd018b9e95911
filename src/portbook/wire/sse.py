"""Server-sent events: messages as a stream that a client can come back to. Pure: no I/O."""

from __future__ import annotations

from typing import Final

__all__ = ["COMMENT", "event", "priming"]

# Keeps proxies from closing a stream that has nothing to say.
COMMENT: Final = b":\n\n"


def event(message: bytes, identifier: str | None = None) -> bytes:
    """Return a message as one event. It is JSON without line breaks, so that it fits on one line."""
    head = b"" if identifier is None else b"id: " + identifier.encode() + b"\n"
    return head + b"event: message\ndata: " + message + b"\n\n"


def priming(identifier: str, retry_ms: int) -> bytes:
    """Return the event that a stream begins with: an id to come back to, and when."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (identifier.encode(), retry_ms)
