"""`OpenConnections`: the connections of one server, and what they share: routes, clock, limits, one timer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final, Protocol

from portbook.doors.http.memory_limits import MessageMemoryLimit, SharedByteLimit
from portbook.doors.http.request import RequestHead
from portbook.doors.http.router import Router
from portbook.doors.http.server.connection_limits_deadlines_and_overload import (
    NEVER,
    Admission,
    ConnectionLimits,
    Deadlines,
    Phase,
    Place,
    PlacedConnection,
    Turns,
    is_served_by_reserve,
)
from portbook.doors.http.server.peer_address import BadForwarding, PeerAddresses
from portbook.doors.http.server.request_parser import BadRequest
from portbook.doors.http.server.response_writer import HeldReplies, date_line

__all__ = ["ConnectionState", "OpenConnection", "OpenConnections"]

# The state of one connection: its place among all of them, what it waits for, and until when.

# Nothing is lost if a connection in one of these phases is closed for a different one.
_GIVES_WAY: Final = (Phase.IDLE, Phase.FIRST_BYTE, Phase.DRAIN)
_ANSWER: Final = Phase.ANSWER


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
        if phase is not _ANSWER and phase in _GIVES_WAY:
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


class OpenConnection(Protocol):
    """An open connection."""

    @property
    def deadline(self) -> float:
        """Return until when its phase may last, on the loop's clock."""
        ...

    def expire(self) -> None:
        """End the phase whose time is over."""
        ...

    def stop(self, *, after_next: bool = False) -> None:
        """Finish the request that is being answered, and close; without one, `after_next` waits for one."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    def make_room(self) -> None:
        """Give up what the client is sending, and what it sent ahead."""
        ...


# What a loop has accepted is a connection of ours one or two of its turns later.
_TURNS_TO_ENTER: Final = 8


class OpenConnections:
    """The open connections of one server, under one timer."""

    def __init__(
        self,
        router: Router,
        limits: ConnectionLimits,
        deadlines: Deadlines,
        addresses: PeerAddresses,
        clock: Callable[[], float] = time.time,
        on_count: Callable[[int], None] | None = None,
    ) -> None:
        """Hold no connection yet; `on_count` is told how many there are when that changes."""
        self.handle = router.handle
        """Returns how a request is answered."""
        self.deadlines = deadlines
        self.seconds = deadlines.by_phase()
        self.reserve_seconds = deadlines.by_phase_in_reserve()
        self.addresses = addresses
        self.admission = Admission(limits, addresses)
        self.is_stopping = False
        self._clock = clock
        self._on_count = on_count
        self.held = HeldReplies()
        self.turns = Turns()
        self.unread = SharedByteLimit[OpenConnection](limits.unread_bytes, lambda one: one.abort())
        """What clients have not read yet."""
        self.unfinished = SharedByteLimit[OpenConnection](
            limits.unfinished_bytes, lambda one: one.make_room()
        )
        """What has come and is no whole message yet, or has to wait."""
        self.workload = MessageMemoryLimit(limits.workload_bytes)
        self._loop = asyncio.get_running_loop()
        self._open: set[OpenConnection] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._timer: asyncio.TimerHandle | None = None
        self._look_at_the_time()

    def __len__(self) -> int:
        """Return how many connections are open."""
        return len(self._open)

    def _look_at_the_time(self) -> None:
        self.now = self._loop.time()
        """The time on the loop's clock, as of the last sweep: deadlines need it no better."""
        self.date = date_line(self._clock())

    def enter(self, connection: OpenConnection) -> None:
        """Take a connection under the timer."""
        self._open.add(connection)
        self._empty.clear()
        if self._on_count is not None:
            self._on_count(len(self._open))
        if self._timer is None:
            self._sweep()

    def leave(self, connection: OpenConnection) -> None:
        """Let a connection go."""
        self._open.discard(connection)
        if self._on_count is not None:
            self._on_count(len(self._open))
        if not self._open:
            self._empty.set()

    def client_of(self, head: RequestHead, address: str | None) -> str | None:
        """Return the client behind a trusted proxy at `address`; None if there is none.

        Raises `BadRequest` where the proxy does not say who it is.
        """
        if address is None or not self.addresses.has_proxies:
            return None
        try:
            return self.addresses.client_of(head, address)
        except BadForwarding:
            raise BadRequest(400, "X-Forwarded-For is a list of addresses.") from None

    def stop(self) -> None:
        """Close every connection, after the request that it is answering."""
        self.is_stopping = True
        for connection in tuple(self._open):
            connection.stop()

    async def retire(self, seconds: float) -> None:
        """Close each connection after its next request; return when none is open, or after `seconds`.

        A client that sends its next request at this moment gets an answer, not a closed connection.
        """
        self.is_stopping = True
        for _ in range(_TURNS_TO_ENTER):
            await asyncio.sleep(0)
        for connection in tuple(self._open):
            connection.stop(after_next=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()

    async def emptied(self, seconds: float) -> None:
        """Return when no connection is open; after `seconds`, those that are left are closed at once."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            for connection in tuple(self._open):
                connection.abort()
            await self._empty.wait()

    def _sweep(self) -> None:
        """End every phase whose time is over, and look again soon while a connection is open."""
        self._look_at_the_time()
        now = self.now
        for connection in [each for each in self._open if each.deadline <= now]:
            connection.expire()
        self._timer = self._loop.call_later(self.deadlines.sweep_s, self._sweep) if self._open else None
