"""The state of a connection: its place, when it may be closed for another, and until when it may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from portbook.doors.http.router import Router
from portbook.doors.http.server.connection_limits_deadlines_and_overload import (
    NEVER,
    ConnectionLimits,
    Deadlines,
    Phase,
)
from portbook.doors.http.server.open_connections import ConnectionState, OpenConnections
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.net.allowed_hosts_and_origins import Hosts


class Connection:
    """Notes whether it had to give way."""

    def __init__(self) -> None:
        self.has_given_way = False

    def give_way(self) -> None:
        self.has_given_way = True


def play(main: Callable[[OpenConnections], None], limits: ConnectionLimits | None = None) -> None:
    async def scene() -> None:
        router = Router({}, Hosts(is_exposed=False))
        main(OpenConnections(router, limits or ConnectionLimits(), Deadlines(), PeerAddresses()))

    asyncio.run(scene())


def test_each_phase_has_its_deadline() -> None:
    def main(shared: OpenConnections) -> None:
        state = ConnectionState(Connection(), shared)
        assert state.deadline == NEVER
        assert state.begin("192.0.2.1")
        assert (state.phase, state.deadline) == (Phase.FIRST_BYTE, shared.now + 15)
        state.enter(Phase.ANSWER)
        assert state.deadline == NEVER
        state.await_reading()
        assert state.deadline == shared.now + 30

    play(main)


def test_only_a_connection_at_rest_may_be_closed_for_another() -> None:
    def main(shared: OpenConnections) -> None:
        connection = Connection()
        state = ConnectionState(connection, shared)
        state.begin("192.0.2.1")
        resting: list[Phase] = []
        for phase in Phase:
            state.enter(phase)
            if connection in shared.admission.idle:
                resting.append(phase)
        assert resting == [Phase.FIRST_BYTE, Phase.IDLE, Phase.DRAIN]
        state.enter(Phase.IDLE)
        state.end()
        assert connection not in shared.admission.idle

    play(main)


def test_the_reserve_serves_operators_for_a_short_time_and_nobody_else() -> None:
    def main(shared: OpenConnections) -> None:
        usual, further = ConnectionState(Connection(), shared), ConnectionState(Connection(), shared)
        assert usual.begin(None)
        usual.enter(Phase.ANSWER)
        assert further.begin(None)
        assert (usual.is_served("/mcp"), further.is_served("/mcp")) == (True, False)
        assert further.is_served("/livez")
        assert further.deadline == shared.now + 2

    play(main, ConnectionLimits(most=1))


def test_an_address_with_too_many_connections_gets_no_place() -> None:
    def main(shared: OpenConnections) -> None:
        first, second = ConnectionState(Connection(), shared), ConnectionState(Connection(), shared)
        assert first.begin("192.0.2.1")
        assert not second.begin("192.0.2.1")
        first.end()
        assert second.begin("192.0.2.1")

    play(main, ConnectionLimits(per_address=1))
