"""Calls counted over processes: here several sets of blocks on one store, and the clock of the database."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from portbook.access.rate_limit import SecondsToWait
from portbook.stores import shared_rates
from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.shared_rates import SharedRates, TokenBlocks, block_size
from portbook.stores.sqlite_store import Store

P = ParamSpec("P")


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class World:
    """One store, and the time of its database and of every process."""

    def __init__(self, path: Path) -> None:
        self.now_s = 1_000.0
        self.stores: list[Store] = []
        self._path = path

    def process(self, per_minute: int, *, is_exact: bool = False) -> SharedRates:
        store = Store(self._path)
        self.stores.append(store)
        return SharedRates(TokenBlocks(store, lambda: self.now_s), per_minute, is_exact=is_exact)

    async def take(self, rates: SharedRates, caller: str = "ada") -> SecondsToWait:
        taken = rates.take(caller, self.now_s)
        return await taken if isinstance(taken, Coroutine) else taken


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path / "portbook.db")

    def database_time(_: Connection) -> int:
        return round(world.now_s * 1e6)

    monkeypatch.setattr(shared_rates, "database_time", database_time)
    yield world
    for store in world.stores:
        store.close()


async def passed(world: World, rates: SharedRates, attempts: int) -> int:
    """How many of so many calls at once pass."""
    taken = await asyncio.gather(*(world.take(rates) for _ in range(attempts)))
    return taken.count(None)


@pytest.mark.parametrize("is_exact", [True, False])
@pytest.mark.parametrize("per_minute", [3, 100])
@in_a_loop
async def test_processes_share_one_limit(world: World, per_minute: int, is_exact: bool) -> None:
    nodes = [world.process(per_minute, is_exact=is_exact) for _ in range(3)]
    got = await asyncio.gather(*(passed(world, node, per_minute) for node in nodes))
    assert sum(got) == per_minute


@in_a_loop
async def test_a_caller_that_has_to_wait_is_told_how_long_and_costs_no_write_meanwhile(world: World) -> None:
    rates = world.process(2, is_exact=True)
    assert [await world.take(rates) for _ in range(3)] == [None, None, 30]
    commits = world.stores[0].version()
    world.now_s += 29.5
    assert await world.take(rates) == 1
    assert world.stores[0].version() == commits
    world.now_s += 0.5
    assert [await world.take(rates) for _ in range(2)] == [None, 30]


@in_a_loop
async def test_a_block_costs_one_write(world: World) -> None:
    rates = world.process(200)
    assert await passed(world, rates, 10) == 10
    before = world.stores[0].version()
    assert await passed(world, rates, 10) == 10
    own, _ = world.stores[0].version()
    assert own - before[0] == 1


@in_a_loop
async def test_beyond_the_limit_each_process_has_at_most_one_block(world: World) -> None:
    """The worst case: every process has just drawn a block when the bucket is full again."""
    per_minute = 200
    nodes = [world.process(per_minute) for _ in range(3)]
    for node in nodes:
        assert await world.take(node) is None  # and so each keeps the rest of a block
    world.now_s += 3600
    passes = sum([await passed(world, node, 2 * per_minute) for node in nodes])
    assert passes == per_minute + 3 * (block_size(per_minute) - 1)


@in_a_loop
async def test_callers_do_not_use_up_each_others_calls(world: World) -> None:
    rates = world.process(1)
    assert [await world.take(rates, caller) for caller in ("ada", "bob", "ada")] == [None, None, 60]


@in_a_loop
async def test_a_call_that_is_cancelled_leaves_the_block_to_the_others(world: World) -> None:
    rates = world.process(200)
    first, second = (asyncio.create_task(world.take(rates)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is None


@in_a_loop
async def test_a_store_that_cannot_be_used_is_told_and_what_is_held_lasts(world: World) -> None:
    rates = world.process(200)
    assert await world.take(rates) is None
    world.stores[0].close()
    assert await passed(world, rates, 9) == 9
    with pytest.raises(StoreError):
        await world.take(rates)


def test_processes_that_count_the_same_callers_in_different_orders_do_not_wait_for_each_other(
    postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from portbook.stores.postgres.database_writer import DatabaseWriter
    from portbook.stores.postgres.postgres_store import PostgresStore

    stores = [PostgresStore(postgres_schema) for _ in range(2)]
    meeting = threading.Barrier(2)
    undone: list[object] = []
    drawing = shared_rates.draw

    def draw_late(*given: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(0.5)  # each has the row of its first caller by then, if it can
        return drawing(*given)

    monkeypatch.setattr(shared_rates, "draw", draw_late)
    monkeypatch.setattr(DatabaseWriter, "_commit_alone", lambda _, job: [(None, undone.append(job))])

    async def scenario() -> None:
        going = threading.Event()
        blocks = [TokenBlocks(store, lambda: 0.0) for store in stores]
        for store in stores:
            store.submit(lambda _: going.wait(60))  # what comes meanwhile shares a transaction
        taking = [
            asyncio.ensure_future(each.take_one(caller, 60))
            for each, callers in zip(blocks, (("ada", "bob"), ("bob", "ada")), strict=True)
            for caller in callers
        ]
        await asyncio.sleep(0)
        going.set()
        assert await asyncio.gather(*taking) == [None] * 4

    asyncio.run(scenario())
    assert undone == []
    for store in stores:
        store.close()
