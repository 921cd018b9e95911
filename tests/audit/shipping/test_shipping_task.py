"""Shipping beside calls: a receiver that fails, hangs, and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from portbook.audit.journal import Journal
from portbook.audit.shipping.receiver_and_address import CannotShip, ShippedRecord
from portbook.audit.shipping.shipping_task import ShippingTask


class Scripted:
    """A receiver that does what a test says, and then takes everything."""

    def __init__(self, *script: Exception | int | None) -> None:
        self._script = list(script)
        self.taken: list[int] = []
        self.is_closed = False

    async def send(self, records: Sequence[ShippedRecord]) -> int:
        step = self._script.pop(0) if self._script else 0
        if step is None:
            await asyncio.sleep(3600)
        if isinstance(step, Exception):
            raise step
        self.taken += (record.seq for record in records)
        return step or 0

    async def close(self) -> None:
        self.is_closed = True


class World:
    def __init__(self, log_dir: Path, receiver: Scripted, *, flush_s: float = 60, held_s: float = 60) -> None:
        self.warnings: list[str] = []
        self.journal = Journal(log_dir, started="2026-01-01T00:00:00.000Z", run="a", keep=10)
        self.receiver = receiver
        self.task = ShippingTask(
            log_dir, receiver, "r", self.warnings.append, look_s=0.01, held_s=held_s, flush_s=flush_s
        )

    def write(self) -> None:
        self.journal.write(b"{}", b'{"a":1}')

    async def until_taken(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.receiver.taken) < count:
                await asyncio.sleep(0.01)

    async def until_problem(self) -> str:
        async with asyncio.timeout(60):
            while self.task.problem is None:
                await asyncio.sleep(0.01)
        return self.task.problem

    async def close(self) -> None:
        await self.task.close()
        self.journal.close()


def test_what_is_written_is_shipped_and_the_end_ships_the_rest(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Scripted())
        world.task.start()
        world.write()
        await world.until_taken(1)
        world.write()
        await world.close()
        assert world.receiver.taken == [1, 2]
        assert world.receiver.is_closed
        assert (world.task.problem, world.warnings) == (None, [])

    asyncio.run(scenario())


def test_a_receiver_that_fails_is_told_once_and_tried_again_until_it_takes_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Scripted(*[CannotShip("it is away")] * 4))
        world.write()
        world.task.start()
        assert await world.until_problem() == "records are not shipped: it is away"
        await world.until_taken(1)
        await world.close()
        assert world.task.problem is None
        assert world.warnings == [
            "records are not shipped, and stay in their files: it is away",
            "records are shipped again",
        ]

    asyncio.run(scenario())


def test_a_receiver_that_hangs_is_given_up_and_sent_the_same_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Scripted(None), held_s=0.05)
        world.write()
        world.task.start()
        assert await world.until_problem() == "records are not shipped: the receiver does not answer"
        await world.until_taken(1)
        assert world.receiver.taken == [1]
        await world.close()

    asyncio.run(scenario())


def test_the_end_does_not_wait_for_a_receiver_that_hangs_and_the_next_start_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Scripted(None), flush_s=0.05)
        world.write()
        world.task.start()
        await asyncio.sleep(0.05)
        await world.close()
        assert world.warnings == [
            "not all records were shipped before the end; the next start goes on with them"
        ]
        taken = Scripted()
        again = ShippingTask(tmp_path, taken, "r", world.warnings.append, look_s=0.01)
        again.start()
        async with asyncio.timeout(60):
            while not taken.taken:
                await asyncio.sleep(0.01)
        await again.close()
        assert taken.taken == [1]

    asyncio.run(scenario())


def test_records_that_are_refused_for_good_are_told_and_not_sent_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Scripted(1))
        world.write()
        world.task.start()
        assert await world.until_problem() == "the receiver refused 1 records; they are in the files alone"
        world.write()
        await world.until_taken(2)
        await world.close()
        assert world.receiver.taken == [1, 2]

    asyncio.run(scenario())


def test_a_fault_of_ours_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Scripted(ZeroDivisionError()))
        world.write()
        world.task.start()
        assert "ZeroDivisionError" in await world.until_problem()
        await world.close()

    asyncio.run(scenario())
