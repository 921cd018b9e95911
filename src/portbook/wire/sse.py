"""Server-sent events: messages as a resumable stream. Pure: no I/O."""

from __future__ import annotations

__all__ = ["event", "priming"]


def event(message: bytes, identifier: str | None = None) -> bytes:
    """Return a message as one event. The message must be JSON without line breaks."""
    head = b"" if identifier is None else b"id: " + identifier.encode() + b"\n"
    return head + b"event: message\ndata: " + message + b"\n\n"


def priming(identifier: str, retry_ms: int) -> bytes:
    """Return the first event of a stream: an id to resume from, and the delay before it."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (identifier.encode(), retry_ms)
