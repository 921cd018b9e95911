"""What keeps a silent stream open, and when a client that lost it should reconnect."""

from __future__ import annotations

from typing import Final

__all__ = ["KEEP_ALIVE", "RETRY_MS", "SILENCE_S"]

# What is sent: a comment, which clients ignore and proxies count as traffic.
KEEP_ALIVE: Final = b":\n\n"

# How long a stream may be silent before it is sent.
SILENCE_S: Final = 15.0

# When a client should reconnect.
RETRY_MS: Final = 500
