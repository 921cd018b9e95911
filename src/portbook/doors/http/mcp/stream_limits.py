"""How much streams keep for clients that resume and for slow ones, for how long, and how many are open."""

from __future__ import annotations

from typing import Final

__all__ = [
    "FEW_UNREAD",
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
]

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
