"""One timer for all connections, and their end."""

from __future__ import annotations

import asyncio

from portbook.doors.http.router import Router
from portbook.doors.http.server.admission import ConnectionLimits
from portbook.doors.http.server.deadlines import NEVER, Deadlines
from portbook.doors.http.server.hall import Hall
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.net.allowed_hosts_and_origins import Hosts


class Guest:
    """A connection that leaves when it is told to."""

    def __init__(self, hall: Hall, deadline: float = NEVER, *, is_stubborn: bool = False) -> None:
        self.hall, self.deadline, self.is_stubborn = hall, deadline, is_stubborn
        self.told: list[str] = []
        hall.enter(self)

    def expire(self) -> None:
        self.told.append("expire")
        self.hall.leave(self)

    def stop(self) -> None:
        self.told.append("stop")
        if not self.is_stubborn:
            self.hall.leave(self)

    def abort(self) -> None:
        self.told.append("abort")
        self.hall.leave(self)


def hall(times: list[float] | None = None) -> Hall:
    router = Router({}, Hosts(is_exposed=False))
    clock = iter(times or [0.0] * 10_000).__next__
    return Hall(router, ConnectionLimits(), Deadlines(sweep_s=0.01), PeerAddresses(), clock)


def test_only_those_whose_time_is_over_are_told_so() -> None:
    async def main() -> None:
        place = hall()
        late, early = Guest(place, place.now + 0.02), Guest(place)
        async with asyncio.timeout(20):
            while not late.told:
                await asyncio.sleep(0.01)
        assert (late.told, early.told, len(place)) == (["expire"], [], 1)
        place.stop()
        await place.emptied(1)

    asyncio.run(main())


def test_a_stop_waits_for_those_that_answer_and_then_no_longer() -> None:
    async def main() -> None:
        place = hall()
        idle, stuck = Guest(place), Guest(place, is_stubborn=True)
        place.stop()
        await place.emptied(0.05)
        assert (idle.told, stuck.told, len(place)) == (["stop"], ["stop", "abort"], 0)

    asyncio.run(main())


def test_the_date_is_that_of_the_last_sweep() -> None:
    async def main() -> None:
        place = hall([0.0, 86_400.0, *[172_800.0] * 1000])
        assert b"Thu, 01 Jan 1970" in place.date
        Guest(place)
        assert b"Fri, 02 Jan 1970" in place.date
        place.stop()

    asyncio.run(main())


def test_the_reserve_is_for_health_checks_and_operators() -> None:
    async def main() -> None:
        place = hall()
        paths = ["/livez", "/health", "/readyz", "/approvals/x", "/mcp", "/", "/execute"]
        assert [place.is_reserved(path) for path in paths] == [True] * 4 + [False] * 3

    asyncio.run(main())
