"""The stay of a connection: its place, when it may be closed for another, and until when it may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from portbook.doors.http.router import Router
from portbook.doors.http.server.admission import ConnectionLimits
from portbook.doors.http.server.deadlines import NEVER, Deadlines, Phase
from portbook.doors.http.server.hall import Hall
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.doors.http.server.stay import Stay
from portbook.net.allowed_hosts_and_origins import Hosts


class Connection:
    """Notes whether it had to give way."""

    def __init__(self) -> None:
        self.has_given_way = False

    def give_way(self) -> None:
        self.has_given_way = True


def play(main: Callable[[Hall], None], limits: ConnectionLimits | None = None) -> None:
    async def scene() -> None:
        router = Router({}, Hosts(is_exposed=False))
        main(Hall(router, limits or ConnectionLimits(), Deadlines(), PeerAddresses()))

    asyncio.run(scene())


def test_each_phase_has_its_deadline() -> None:
    def main(hall: Hall) -> None:
        stay = Stay(Connection(), hall)
        assert stay.deadline == NEVER
        assert stay.begin("192.0.2.1")
        assert (stay.phase, stay.deadline) == (Phase.FIRST_BYTE, hall.now + 15)
        stay.enter(Phase.ANSWER)
        assert stay.deadline == NEVER
        stay.await_reading()
        assert stay.deadline == hall.now + 30

    play(main)


def test_only_a_connection_at_rest_may_be_closed_for_another() -> None:
    def main(hall: Hall) -> None:
        connection = Connection()
        stay = Stay(connection, hall)
        stay.begin("192.0.2.1")
        resting: list[Phase] = []
        for phase in Phase:
            stay.enter(phase)
            if connection in hall.admission.idle:
                resting.append(phase)
        assert resting == [Phase.FIRST_BYTE, Phase.IDLE, Phase.DRAIN]
        stay.enter(Phase.IDLE)
        stay.end()
        assert connection not in hall.admission.idle

    play(main)


def test_the_reserve_serves_operators_for_a_short_time_and_nobody_else() -> None:
    def main(hall: Hall) -> None:
        usual, further = Stay(Connection(), hall), Stay(Connection(), hall)
        assert usual.begin(None)
        usual.enter(Phase.ANSWER)
        assert further.begin(None)
        assert (usual.is_served("/mcp"), further.is_served("/mcp")) == (True, False)
        assert further.is_served("/livez")
        assert further.deadline == hall.now + 2

    play(main, ConnectionLimits(most=1))


def test_an_address_with_too_many_connections_gets_no_place() -> None:
    def main(hall: Hall) -> None:
        first, second = Stay(Connection(), hall), Stay(Connection(), hall)
        assert first.begin("192.0.2.1")
        assert not second.begin("192.0.2.1")
        first.end()
        assert second.begin("192.0.2.1")

    play(main, ConnectionLimits(per_address=1))
