"""The state of one connection: its place among all of them, what it waits for, and until when."""

from __future__ import annotations

from typing import Final

from portbook.doors.http.server.admission import Place, PlacedConnection, is_served_by_reserve
from portbook.doors.http.server.deadlines import NEVER, Phase
from portbook.doors.http.server.open_connections import OpenConnections

__all__ = ["ConnectionState"]

# Nothing is lost if a connection in one of these phases is closed for a different one.
_GIVES_WAY: Final = (Phase.FIRST_BYTE, Phase.IDLE, Phase.DRAIN)


class ConnectionState:
    """One connection's place, phase and deadline."""

    __slots__ = ("_connection", "_place", "_seconds", "_shared", "address", "deadline", "is_usual", "phase")

    def __init__(self, connection: PlacedConnection, shared: OpenConnections) -> None:
        self._connection = connection
        self._shared = shared
        self._place = Place.NONE
        self._seconds = shared.seconds
        self.address: str | None = None
        """Where the client is; None at a Unix socket."""
        self.is_usual = False
        """Whether its place serves every path."""
        self.phase = Phase.CLOSING
        self.deadline = NEVER

    def begin(self, address: str | None) -> bool:
        """Take a place; return whether there is one."""
        self.address = address
        self._place = self._shared.admission.place(self._connection, address)
        if self._place is Place.NONE:
            return False
        self.is_usual = self._place is Place.USUAL
        if self._place is Place.RESERVE:
            self._seconds = self._shared.reserve_seconds
        self.enter(Phase.FIRST_BYTE)
        return True

    def enter(self, phase: Phase) -> None:
        """Wait for something else from now on, until its deadline."""
        shared = self._shared
        if phase in _GIVES_WAY:
            if self.is_usual:
                shared.admission.idle[self._connection] = None
        elif self.phase in _GIVES_WAY:
            shared.admission.idle.pop(self._connection, None)
        self.phase = phase
        self.deadline = shared.now + self._seconds[phase]

    def await_reading(self) -> None:
        """Give the client time to read, whatever else is waited for."""
        self.deadline = self._shared.now + self._shared.deadlines.write_s

    def is_served(self, path: str) -> bool:
        """Return whether this place serves a path: the reserve serves few."""
        return self.is_usual or is_served_by_reserve(path)

    def end(self) -> None:
        """Free the place."""
        self._shared.admission.leave(self._connection, self._place, self.address)
        self._place = Place.NONE
        self.is_usual = False
