"""One timer for all connections, and their end."""

from __future__ import annotations

import asyncio

from portbook.doors.http.router import Router
from portbook.doors.http.server.connection_limits_deadlines_and_overload import (
    NEVER,
    ConnectionLimits,
    Deadlines,
)
from portbook.doors.http.server.open_connections import OpenConnections
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.net.allowed_hosts_and_origins import Hosts


class OpenConnection:
    """A connection that leaves when it is told to."""

    def __init__(
        self, shared: OpenConnections, deadline: float = NEVER, *, is_stubborn: bool = False
    ) -> None:
        self.shared, self.deadline, self.is_stubborn = shared, deadline, is_stubborn
        self.told: list[str] = []
        shared.enter(self)

    def expire(self) -> None:
        self.told.append("expire")
        self.shared.leave(self)

    def stop(self) -> None:
        self.told.append("stop")
        if not self.is_stubborn:
            self.shared.leave(self)

    def abort(self) -> None:
        self.told.append("abort")
        self.shared.leave(self)


def shared(times: list[float] | None = None) -> OpenConnections:
    router = Router({}, Hosts(is_exposed=False))
    clock = iter(times or [0.0] * 10_000).__next__
    return OpenConnections(router, ConnectionLimits(), Deadlines(sweep_s=0.01), PeerAddresses(), clock)


def test_only_those_whose_time_is_over_are_told_so() -> None:
    async def main() -> None:
        place = shared()
        late, early = OpenConnection(place, place.now + 0.02), OpenConnection(place)
        async with asyncio.timeout(20):
            while not late.told:
                await asyncio.sleep(0.01)
        assert (late.told, early.told, len(place)) == (["expire"], [], 1)
        place.stop()
        await place.emptied(1)

    asyncio.run(main())


def test_a_stop_waits_for_those_that_answer_and_then_no_longer() -> None:
    async def main() -> None:
        place = shared()
        idle, stuck = OpenConnection(place), OpenConnection(place, is_stubborn=True)
        place.stop()
        await place.emptied(0.05)
        assert (idle.told, stuck.told, len(place)) == (["stop"], ["stop", "abort"], 0)

    asyncio.run(main())


def test_a_connection_that_was_just_accepted_is_waited_for_when_a_newer_server_takes_over() -> None:
    class AfterNext(OpenConnection):
        def stop(self, *, after_next: bool = False) -> None:
            self.told.append(f"stop {after_next}")

    async def main() -> None:
        place, loop = shared(), asyncio.get_running_loop()
        made: list[AfterNext] = []
        loop.call_soon(loop.call_soon, lambda: made.append(AfterNext(place)))
        retiring = asyncio.create_task(place.retire(20))
        await asyncio.sleep(0.05)
        assert [each.told for each in made] == [["stop True"]]
        assert not retiring.done()
        place.leave(made[0])
        await retiring

    asyncio.run(main())


def test_the_date_is_that_of_the_last_sweep() -> None:
    async def main() -> None:
        place = shared([0.0, 86_400.0, *[172_800.0] * 1000])
        assert b"Thu, 01 Jan 1970" in place.date
        OpenConnection(place)
        assert b"Fri, 02 Jan 1970" in place.date
        place.stop()

    asyncio.run(main())
