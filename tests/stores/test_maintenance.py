"""What is in a store, whether it works, and a backup that was restored."""

from __future__ import annotations

import asyncio
from pathlib import Path

from portbook.access.approval_state_and_binding import State
from portbook.clock import later
from portbook.stores.connection_clock_and_errors import Connection
from portbook.stores.maintenance import problems_of_store, restore_store, store_status
from portbook.stores.stored_sessions import SessionStore
from support.approval_world import ASK, START, FixedClock, World, approved, asked, for_order, refusal_of, why


def test_a_restoration_expires_what_was_open_and_ends_sessions(world: World) -> None:
    approvals, store = world.approvals(), world.store()

    async def scenario() -> list[str]:
        await SessionStore(store, world.clock).begin("s", "bound", {})
        running = await approved(approvals, for_order(1))
        await approvals.admit(for_order(1), running)
        done = await approved(approvals, for_order(2))
        await approvals.admit(for_order(2), done)
        await approvals.complete(done)
        open_ones = [await approved(approvals), await asked(approvals, for_order(3))]
        assert restore_store(store, world.clock.now()) == (1, 3, 1, 0)
        approvals.give_back(running)  # too late: it may not be open again
        assert why(await refusal_of(approvals, for_order(1), running)) in ("used", "expired")
        assert why(await refusal_of(approvals, ASK, open_ones[0])) == "expired"
        return [running, done, *open_ones]

    _, done, *expired = asyncio.run(scenario())
    tickets = [approvals.ticket(each) for each in (done, *expired)]
    assert [each and each.state for each in tickets] == [State.DONE, State.EXPIRED, State.EXPIRED]
    status = store_status(store)
    assert (status["epoch"], status["restored_at"], status["sessions"]) == (1, START, 0)
    store.close()


def test_a_restoration_by_a_clock_that_is_ahead_or_behind_leaves_nothing_open(world: World) -> None:
    approvals, store = world.approvals(), world.store()

    async def scenario() -> None:
        for number, apart_s in enumerate((3600 * 24, -3600 * 24)):
            approval_id = await approved(approvals, for_order(number))
            restore_store(store, later(world.clock.now(), apart_s))
            world.clock.advance(-60)
            assert why(await refusal_of(approvals, for_order(number), approval_id)) == "expired"

    asyncio.run(scenario())
    store.close()


def test_a_restoration_of_what_machines_share_goes_by_the_clock_of_the_database(
    tmp_path: Path, postgres_schema: str
) -> None:
    world = World(tmp_path / "none", postgres_schema)
    approvals, store = world.approvals(), world.store()
    asyncio.run(approved(approvals))
    assert restore_store(store, "2999-01-01T00:00:00.000Z").expired_approvals == 1
    assert store_status(store)["restored_at"] <= approvals.now()
    store.close()
    world.close()


def test_clocks_that_are_apart_are_a_problem(world: World) -> None:
    store = world.store()
    store.submit(lambda _: None).result()
    [problem] = problems_of_store(store, FixedClock())
    assert "s apart; set both by NTP" in problem
    store.close()


def test_a_store_that_is_not_there_is_not_made_by_looking(world: World) -> None:
    store = world.store()
    status = store_status(store)
    assert (status["tables_version"], status["is_current"], status["kind"]) == (0, False, "sqlite")
    assert not world.path.exists()


def test_an_older_version_is_shown_and_not_migrated(tmp_path: Path, world: World) -> None:
    store = world.store()

    def age(connection: Connection) -> None:
        connection.execute("PRAGMA user_version = 3")

    store.submit(age).result()
    store.close()
    status = store_status(world.store())
    assert (status["tables_version"], status["is_current"]) == (3, False)
    assert "approvals" not in status
