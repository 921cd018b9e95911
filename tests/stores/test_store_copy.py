"""A store in a file, copied into a database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from portbook.access.approval_state_and_binding import State
from portbook.clock import SystemClock
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.maintenance import copy_store
from portbook.stores.postgres.postgres_store import PostgresStore
from portbook.stores.sqlite_store import Store
from support.approval_world import ASK, World, approved, asked, for_order, refusal_of, state_of, why


def test_everything_but_what_belongs_to_processes_is_copied(world: World, postgres_schema: str) -> None:
    world.clock.time = SystemClock().now()  # approvals expire by the clock of the database there
    approvals = world.approvals()

    async def scenario() -> list[str]:
        return [
            await approved(approvals),
            await asked(approvals, for_order(1, shown={"é\u202e": [None, 1.5]})),
        ]

    ids = asyncio.run(scenario())
    source, target = Store(world.path), PostgresStore(postgres_schema)
    before = {each.id: each for each in approvals.tickets()}
    rows = copy_store(source, target)
    assert rows["ticket"] == 2
    assert not {"lease", "upstream"} & rows.keys()
    assert target.key  # its own was replaced
    target.close()
    copied = World(world.path, postgres_schema)
    moved = copied.approvals()
    assert [each.id for each in moved.tickets()] == ids[::-1]  # in their order
    assert {each.id: each for each in moved.tickets()} == before
    fresh = PostgresStore(postgres_schema)
    assert fresh.key == source.key
    with pytest.raises(StoreError, match="copy into an empty database"):
        copy_store(source, fresh)
    for each in (source, fresh, copied):
        each.close()


def test_what_was_copied_is_open_in_the_file_by_no_clock(world: World, postgres_schema: str) -> None:
    approvals = world.approvals()

    async def scenario() -> None:
        running, waiting = await approved(approvals, for_order(1)), await approved(approvals)
        await approvals.admit(for_order(1), running)
        source, target = Store(world.path), PostgresStore(postgres_schema)
        copy_store(source, target)
        source.close()
        target.close()
        await approvals.restore(running)  # its process goes on for a while
        world.clock.advance(-3600)  # and its clock is slow
        assert why(await refusal_of(approvals, for_order(1), running)) == "expired"
        assert why(await refusal_of(approvals, ASK, waiting)) == "expired"

    asyncio.run(scenario())


def test_a_database_that_is_away_leaves_the_file_as_it_was(world: World, tmp_path: Path) -> None:
    approvals = world.approvals()
    approval_id = asyncio.run(approved(approvals))
    source, away = Store(world.path), PostgresStore(f"postgresql:///x?host={tmp_path}")
    with pytest.raises(StoreError, match="cannot be reached"):
        copy_store(source, away)
    away.close()
    source.close()
    assert state_of(approvals, approval_id) is State.APPROVED
