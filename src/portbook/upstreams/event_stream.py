"""`UpstreamEvents`: the events of one response as messages, and where to resume it."""

from __future__ import annotations

from typing import Final

from portbook.upstreams.stdio_transport import MAX_ANSWER_BYTES
from portbook.upstreams.transport import Receiver
from portbook.wire.lines_and_size_limit import OVERSIZE
from portbook.wire.sse import EventReader

__all__ = ["UpstreamEvents"]

# Longer than any id that is meant, and short enough for a header.
_MAX_ID: Final = 1024


class UpstreamEvents:
    """Delivers the messages of a stream; it may continue in several responses."""

    def __init__(self, receiver: Receiver, of: int | None) -> None:
        """Deliver to `receiver` what belongs to the request `of`; None where it belongs to none."""
        self._receiver = receiver
        self._of = of
        self._reader = EventReader(MAX_ANSWER_BYTES)
        self.has_begun = False
        """Whether a response was a stream."""
        self.count = 0
        """How many messages were delivered."""

    @property
    def is_answered(self) -> bool:
        """Return whether the request has its answer."""
        return self._of is not None and not self._receiver.awaits(self._of)

    @property
    def last_id(self) -> str | None:
        """Return the id of the latest event that had one; None where no header can hold it."""
        found = self._reader.last_id
        is_usable = found is not None and found.isascii() and found.isprintable() and len(found) <= _MAX_ID
        return found if is_usable else None

    @property
    def retry_ms(self) -> int | None:
        """Return how long the server wants us to wait before we resume."""
        return self._reader.retry_ms

    def wants(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Return whether a response is a stream of events."""
        is_stream = headers.get(b"content-type", b"").lower().startswith(b"text/event-stream")
        self.has_begun = self.has_begun or (is_stream and status == 200)
        return is_stream and status == 200

    def take(self, part: bytes) -> None:
        """Deliver the messages that are complete now."""
        for event in self._reader.feed(part):
            if event.kind == "message" and event.data.strip():
                self.count += 1
                self._receiver.received(event.data, self._of)
        if self._reader.was_cut:
            self._reader.was_cut = False
            self._receiver.received(OVERSIZE, self._of)
