"""The messages of one event stream: numbered from 1, bounded, and delivered up to a position.

The oldest message that may be dropped goes first, so that a reader that keeps up misses nothing; without such
a message, the oldest goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from portbook.canonical import tight_copy

__all__ = [
    "FEW_UNREAD",
    "KEEP_ALIVE",
    "KEPT_READ_S",
    "KEPT_UNREAD_S",
    "MAX_BYTES",
    "MAX_BYTES_OF_ALL",
    "MAX_BYTES_OF_SESSION",
    "MAX_EVENTS",
    "MAX_LISTENING",
    "MAX_REPORT_BYTES",
    "MAX_STREAMS",
    "MAX_UNREAD_BYTES",
    "RETRY_MS",
    "SILENCE_S",
    "StreamMessages",
]


class StreamMessages:
    """The messages of a stream that are still kept, by their position."""

    __slots__ = (
        "_is_pressed",
        "_messages",
        "_spare",
        "_spare_bytes",
        "_unread",
        "_unread_bytes",
        "bytes",
        "delivered",
        "end_position",
    )

    def __init__(self, is_pressed: Callable[[], bool], *, is_deduplicated: bool) -> None:
        """Keep fewer messages while `is_pressed`: all streams together are over their limit."""
        self.end_position = 0
        """The position of the last message."""
        self.delivered = 0
        """The position of the last message that was written to a reader."""
        self.bytes = 0
        self._is_pressed = is_pressed
        self._messages: dict[int, bytes] = {}
        self._spare: deque[int] = deque()
        self._spare_bytes = 0
        self._unread_bytes = 0
        self._unread: dict[bytes, int] | None = {} if is_deduplicated else None

    @property
    def has_room(self) -> bool:
        """Return whether little of what was added waits for its reader."""
        return self._unread_bytes <= MAX_UNREAD_BYTES

    def add(self, message: bytes, *, is_vital: bool) -> bool:
        """Add a message; return whether it is new: one that equals an unread one may be dropped."""
        if self._unread is not None and message in self._unread:
            return False
        message = tight_copy(message)
        if self._unread is not None:
            self._unread[message] = self.end_position + 1
        self.end_position += 1
        self._messages[self.end_position] = message
        self.bytes += len(message)
        self._unread_bytes += len(message)
        if not is_vital:
            self._spare.append(self.end_position)
            self._spare_bytes += len(message)
        return True

    def after(self, position: int) -> int | None:
        """Return the position of the next message; None where there is none yet."""
        if position + 1 in self._messages:
            return position + 1
        if position >= self.end_position:
            return None
        return next((each for each in self._messages if each > position), None)

    def read(self, position: int) -> bytes:
        """Return a message that is about to be written; from here on, an equal one is new."""
        message = self._messages[position]
        self._forget_unread(message, position)
        return message

    def deliver(self, position: int) -> None:
        """Note that a reader has the messages up to a position; it may have said so itself."""
        for each in range(self.delivered + 1, position + 1):
            self._unread_bytes -= len(self._messages.get(each, b""))
        self.delivered = max(self.delivered, position)

    def kept(self) -> list[tuple[int, bytes]]:
        """Return the messages that are still kept, each with its position."""
        return list(self._messages.items())

    def drop_one(self) -> tuple[int, int] | None:
        """Drop a message that is too much; return its position and bytes, None where none is too much."""
        position = self._superfluous()
        if position is None:
            return None
        dropped = self._messages.pop(position)
        if self._spare and self._spare[0] == position:
            self._spare.popleft()
            self._spare_bytes -= len(dropped)
        if position > self.delivered:
            self._unread_bytes -= len(dropped)
        self._forget_unread(dropped, position)
        self.bytes -= len(dropped)
        return position, len(dropped)

    def clear(self) -> None:
        """Drop all messages."""
        self._messages.clear()
        self._spare.clear()
        self._spare_bytes = self._unread_bytes = 0

    def _superfluous(self) -> int | None:
        """Return the position of a message to drop: the oldest that is not vital, or else the oldest."""
        if self._spare_bytes > MAX_REPORT_BYTES:
            return self._spare[0]
        if len(self._messages) > MAX_EVENTS or self.bytes > MAX_BYTES:
            if self._spare:
                return self._spare[0]
            return next(iter(self._messages)) if len(self._messages) > 1 else None
        if self._spare and self._is_pressed():
            is_history = self._spare[0] <= self.delivered
            return self._spare[0] if is_history or len(self._spare) > FEW_UNREAD else None
        return None

    def _forget_unread(self, message: bytes, position: int) -> None:
        if self._unread is not None and self._unread.get(message) == position:
            del self._unread[message]


# How much streams keep for clients that resume and for slow ones, for how long, and how many are open.

# What one stream keeps.
MAX_EVENTS: Final = 1000
MAX_BYTES: Final = 4 * 1024 * 1024

# What of it may be reports, which may be dropped: more than a client shows to a person.
MAX_REPORT_BYTES: Final = 256 * 1024

# What a reader has not read yet before tools that report wait for it.
MAX_UNREAD_BYTES: Final = 64 * 1024

# What may wait for a reader while all streams are over their limit: enough for a reader that keeps up.
FEW_UNREAD: Final = 16

# Bytes that the streams of one session hold, those of all sessions, and streams of one session.
MAX_BYTES_OF_SESSION: Final = 8 * 1024 * 1024
MAX_BYTES_OF_ALL: Final = 256 * 1024 * 1024
MAX_STREAMS: Final = 64

# How long an ended stream is retained: after its end was read, and if no client has read its end.
KEPT_READ_S: Final = 60.0
KEPT_UNREAD_S: Final = 600.0

# Streams that one caller holds open with GET: half of all connections, the rest is for further callers.
MAX_LISTENING: Final = 1024


# What keeps a silent stream open, and when a client that lost it should reconnect.

# What is sent: a comment, which clients ignore and proxies count as traffic.
KEEP_ALIVE: Final = b":\n\n"

# How long a stream may be silent before it is sent.
SILENCE_S: Final = 15.0

# When a client should reconnect.
RETRY_MS: Final = 500
