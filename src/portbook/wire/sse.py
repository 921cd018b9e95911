"""Server-sent events: messages as a resumable stream, written and read. Pure: no I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["EventReader", "ServerSentEvent", "event", "priming"]

# The longest delay before a client reconnects that a server may ask for.
_MAX_RETRY_MS: Final = 60_000


def event(message: bytes, identifier: str | None = None) -> bytes:
    """Return a message as one event. The message must be JSON without line breaks."""
    head = b"" if identifier is None else b"id: " + identifier.encode() + b"\n"
    return head + b"event: message\ndata: " + message + b"\n\n"


def priming(identifier: str, retry_ms: int) -> bytes:
    """Return the first event of a stream: an id to resume from, and the delay before it."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (identifier.encode(), retry_ms)


class ServerSentEvent(NamedTuple):
    """One event of a stream."""

    kind: str
    """Its type; `message` where it names none."""
    data: bytes


class EventReader:
    """Reads events from the bytes of a stream, in bounded memory.

    An event that is longer than the limit is dropped; `was_cut` then says so, once.
    """

    __slots__ = (
        "_cr",
        "_data",
        "_held",
        "_is_cut",
        "_is_dropping",
        "_kind",
        "_limit",
        "_size",
        "last_id",
        "retry_ms",
        "was_cut",
    )

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._is_cut = False
        self._is_dropping = False
        self._cr = False
        self.last_id: str | None = None
        """The id of the latest event that had one; a client resumes from it."""
        self.retry_ms: int | None = None
        """How long the server wants clients to wait before they reconnect."""
        self.was_cut = False
        """Whether an event was dropped since this was last set to False."""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Add bytes; return the events that are now complete."""
        if self._cr and chunk[:1] == b"\n":  # the second half of a line end
            chunk = chunk[1:]
        self._cr = chunk[-1:] == b"\r"
        events: list[ServerSentEvent] = []
        *lines, tail = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._hold(line)
            self._end_line(events)
        self._hold(tail)
        return events

    def _hold(self, piece: bytes) -> None:
        self._held += piece
        if len(self._held) > self._limit:
            self._held.clear()
            self._is_cut = True

    def _end_line(self, events: list[ServerSentEvent]) -> None:
        line = bytes(self._held)
        self._held.clear()
        if line or self._is_cut:
            self._take(line)
            return
        if self._data and not self._is_dropping:
            kind = self._kind.decode("utf-8", "replace") or "message"
            events.append(ServerSentEvent(kind, b"\n".join(self._data)))
        self._data, self._kind, self._size, self._is_dropping = [], b"", 0, False

    def _take(self, line: bytes) -> None:
        if self._is_cut or self._size + len(line) > self._limit:
            self._data, self._is_cut, self._is_dropping, self.was_cut = [], False, True, True
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(line)
        elif name == b"event":
            self._kind = value
        elif name == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = min(int(value), _MAX_RETRY_MS)
