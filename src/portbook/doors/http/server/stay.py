"""The stay of one connection: its place among all of them, what it waits for, and until when."""

from __future__ import annotations

from typing import Final

from portbook.doors.http.server.admission import Place, PlacedConnection
from portbook.doors.http.server.deadlines import NEVER, Phase
from portbook.doors.http.server.hall import Hall

__all__ = ["Stay"]

# Nothing is lost if a connection in one of these phases is closed for a different one.
_GIVES_WAY: Final = (Phase.FIRST_BYTE, Phase.IDLE, Phase.DRAIN)


class Stay:
    """One connection's place, phase and deadline."""

    __slots__ = ("_connection", "_hall", "_place", "_seconds", "address", "deadline", "is_usual", "phase")

    def __init__(self, connection: PlacedConnection, hall: Hall) -> None:
        self._connection = connection
        self._hall = hall
        self._place = Place.NONE
        self._seconds = hall.seconds
        self.address: str | None = None
        """Where the client is; None at a Unix socket."""
        self.is_usual = False
        """Whether its place serves every path."""
        self.phase = Phase.CLOSING
        self.deadline = NEVER

    def begin(self, address: str | None) -> bool:
        """Take a place; return whether there is one."""
        self.address = address
        self._place = self._hall.admission.place(self._connection, address)
        if self._place is Place.NONE:
            return False
        self.is_usual = self._place is Place.USUAL
        if self._place is Place.RESERVE:
            self._seconds = self._hall.reserve_seconds
        self.enter(Phase.FIRST_BYTE)
        return True

    def enter(self, phase: Phase) -> None:
        """Wait for something else from now on, until its deadline."""
        hall = self._hall
        if phase in _GIVES_WAY:
            if self.is_usual:
                hall.admission.idle[self._connection] = None
        elif self.phase in _GIVES_WAY:
            hall.admission.idle.pop(self._connection, None)
        self.phase = phase
        self.deadline = hall.now + self._seconds[phase]

    def await_reading(self) -> None:
        """Give the client time to read, whatever else is waited for."""
        self.deadline = self._hall.now + self._hall.deadlines.write_s

    def is_served(self, path: str) -> bool:
        """Return whether this place serves a path: the reserve serves few."""
        return self.is_usual or self._hall.is_reserved(path)

    def end(self) -> None:
        """Free the place."""
        self._hall.admission.leave(self._connection, self._place, self.address)
        self._place = Place.NONE
        self.is_usual = False
