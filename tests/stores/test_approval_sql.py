"""Tickets as rows: kept as they were, one for the same call, counted, listed and pruned."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from portbook.access.approval_state_and_binding import State
from portbook.errors import Reason
from portbook.stores import approval_sql as rows
from portbook.stores import approvals_asked_and_redeemed as tickets
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.connection_clock_and_errors import Connection
from support.approval_world import ASK, World, approved, asked, for_order, refusal_of, settled, why


class Counting:
    """A connection that counts the rows it sends."""

    def __init__(self, connection: Connection) -> None:
        self.sent = 0
        self._connection = connection

    def execute(self, statements: str, bindings: Any = None, /) -> Any:
        found = list(self._connection.execute(statements, bindings))
        self.sent += len(found)
        return found


def test_tickets_are_read_a_page_at_a_time_newest_first(
    approvals: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_PAGE", 4)

    async def scenario() -> list[str]:
        return [await asked(approvals, for_order(number)) for number in range(10)]

    newest = asyncio.run(scenario())[::-1]
    assert [ticket.id for ticket in approvals.tickets()] == newest

    def first_three(connection: Connection) -> int:
        counting = Counting(connection)
        found = itertools.islice(rows.newest(counting, State), 3)
        assert [ticket.id for ticket in found] == newest[:3]
        return counting.sent

    assert approvals._store.read(first_three, 0) == 4
    assert [ticket.id for ticket in approvals.tickets(limit=5)] == newest[:5]
    assert [ticket.id for ticket in approvals.tickets(State.PENDING, limit=None)] == newest


@pytest.mark.covers("002.approval.no-secrets")
def test_the_real_arguments_are_kept_nowhere(world: World, tmp_path: Path) -> None:
    ask = ASK._replace(arguments={"password": "canary-4711"}, shown={"password": "[redacted]"})
    asyncio.run(approved(world.approvals(), ask))
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"[redacted]" in kept
    assert b"canary-4711" not in kept


@pytest.mark.parametrize("shown", [{"n": 2**70}, {"a": {"b": [None, 1.5, "é\u202e\x00"]}}, [], "gone", None])
def test_what_people_are_shown_comes_back_as_it_was(approvals: ApprovalStore, shown: Any) -> None:
    asyncio.run(asked(approvals, ASK._replace(shown=shown)))
    assert approvals.tickets()[0].shown == shown


def test_asking_again_for_the_same_is_one_ticket(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        first = await asked(approvals)
        assert await asked(approvals) == first
        assert await asyncio.gather(*(asked(approvals) for _ in range(20))) == [first] * 20

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"cents": 20_001}},
        {"tool": "refund_all"},
        {"tool_digest": "tool-2"},
        {"policy_digest": "policy-2"},
        {"caller": "bob"},
        {"session": "s-2"},
        {"session": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_asking_for_anything_else_is_another_ticket(approvals: ApprovalStore, change: dict[str, Any]) -> None:
    async def scenario() -> None:
        assert await asked(approvals) != await asked(approvals, ASK._replace(**change))

    asyncio.run(scenario())


def test_a_caller_can_have_only_so_many_undecided(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "_MAX_PENDING", 3)
    approvals = world.approvals(expires_s=60)

    async def scenario() -> None:
        made = [await asked(approvals, for_order(number)) for number in range(3)]
        refusal = await refusal_of(approvals, for_order(3))
        assert refusal.reason is Reason.RATE_LIMITED
        assert await asked(approvals, for_order(2)) == made[2]  # nothing new is asked for
        await asked(approvals, for_order(3, caller="bob"))  # others are not held up
        await approvals.decide(made[0], "deny", by="eve")
        await asked(approvals, for_order(4))
        world.clock.advance(60)
        await asked(approvals, for_order(5))

    asyncio.run(scenario())


def test_a_caller_can_have_only_so_many_bytes_undecided(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tickets, "_MAX_PENDING_BYTES", 1000)
    approvals = world.approvals()

    async def scenario() -> None:
        await asked(approvals, ASK._replace(shown={"text": "ä" * 600}))
        assert (await refusal_of(approvals, for_order(1))).reason is Reason.RATE_LIMITED

    asyncio.run(scenario())


def test_the_limits_are_those_that_are_documented() -> None:
    assert (tickets._MAX_PENDING, tickets.EXPIRES_S) == (1000, 3600)


def test_old_tickets_go_and_undecided_ones_go_sooner(world: World) -> None:
    approvals = world.approvals(expires_s=60)

    async def scenario() -> None:
        undecided = await asked(approvals, for_order(1))
        decided = await approved(approvals, for_order(2))
        world.clock.advance(2 * 86400)
        await asked(approvals, for_order(3))
        assert approvals.ticket(undecided) is None
        assert approvals.ticket(decided) is not None
        world.clock.advance(90 * 86400)
        await asked(approvals, for_order(4))
        assert approvals.ticket(decided) is None
        assert why(await refusal_of(approvals, for_order(2), decided)) == "unknown"

    asyncio.run(scenario())


def test_tickets_are_listed_newest_first_and_by_what_they_are_now(world: World) -> None:
    approvals = world.approvals(expires_s=3600)

    async def scenario() -> None:
        made: dict[State, str] = {}
        made[State.EXPIRED] = await asked(approvals, for_order(0))
        world.clock.advance(3600)
        made[State.PENDING] = await asked(approvals, for_order(1))
        made[State.APPROVED] = await approved(approvals, for_order(2))
        for number, state in enumerate((State.RUNNING, State.DONE, State.FAILED), start=3):
            made[state] = await approved(approvals, for_order(number))
            await approvals.admit(for_order(number), made[state])
            if state is not State.RUNNING:
                approvals.finish(made[state], is_done=state is State.DONE)
        made[State.DENIED] = await asked(approvals, for_order(9))
        await approvals.decide(made[State.DENIED], "deny", by="eve")
        await settled(approvals)
        assert [ticket.id for ticket in approvals.tickets()] == [*reversed(made.values())]
        assert [ticket.id for ticket in approvals.tickets(limit=2)] == [*reversed(made.values())][:2]
        for state in State:
            found = [ticket.id for ticket in approvals.tickets(state)]
            assert found == ([made[state]] if state in made else []), state

    asyncio.run(scenario())


def test_listing_does_not_keep_the_reader_in_the_past(world: World) -> None:
    approvals, operator = world.approvals(), world.approvals()

    async def scenario() -> None:
        for number in range(5):
            await asked(approvals, for_order(number))
        assert len(operator.tickets(limit=1)) == 1  # stops reading halfway
        approval_id = await asked(approvals, for_order(6))
        assert operator.tickets(limit=1)[0].id == approval_id

    asyncio.run(scenario())
