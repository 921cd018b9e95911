"""What comes in on one connection, no faster than it is taken."""

from __future__ import annotations

import asyncio
from typing import Final

from portbook.doors.http.server.request_reader import RequestReader

__all__ = ["ClientInput"]

# What a client may send ahead of its turn before its connection is no longer read.
_MAX_AHEAD: Final = 16_384


class ClientInput:
    """The reading end of one connection."""

    __slots__ = ("_transport", "is_paused", "reader")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_paused = False
        """Whether nothing is read from the client now."""
        self.reader = RequestReader()

    def hold_back(self) -> None:
        """Read no more from the client if much has come ahead of its turn."""
        is_much = self.reader.unread_bytes > _MAX_AHEAD
        if is_much and not self.is_paused and not self._transport.is_closing():
            self.is_paused = True
            self._transport.pause_reading()

    def read_on(self) -> None:
        """Read from the client again."""
        if self.is_paused and not self._transport.is_closing():
            self.is_paused = False
            self._transport.resume_reading()
