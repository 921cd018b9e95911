"""Approvals as they are kept: asked, decided, redeemed once, and nothing lost in between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from portbook.access.approval_state_and_binding import TRANSITIONS, State, Ticket, Undecidable
from portbook.clock import later
from portbook.errors import Reason, Refused
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.connection_clock_and_errors import Connection, StoreError, UnknownOutcome
from portbook.stores.postgres import database_writer
from portbook.stores.postgres.connection_address_and_errors import BoundedConnection
from support.approval_world import (
    ASK,
    START,
    World,
    approved,
    asked,
    for_order,
    refusal_of,
    settled,
    state_of,
    why,
)
from support.counts import count

LONG_MS = 60_000


# -- asking


@pytest.mark.covers("002.approval.ticket")
def test_a_call_that_was_not_approved_becomes_a_ticket(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        refusal = await refusal_of(approvals, ASK)
        [ticket] = approvals.tickets()
        assert refusal.reason is Reason.APPROVAL_REQUIRED
        assert refusal.details == {"approval_id": ticket.id, "expires_at": later(ticket.asked_at, 3600)}
        assert refusal.is_retryable
        assert (ticket.state, ticket.tool, ticket.shown, ticket.caller, ticket.session) == (
            State.PENDING,
            "refund",
            {"cents": 20_000},
            "ada",
            "s-1",
        )
        assert (ticket.rule, ticket.place) == ("large refunds need a person", "portbook.toml:9")

    asyncio.run(scenario())


def test_what_was_denied_is_asked_for_anew_without_its_id(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        first = await asked(approvals)
        await approvals.decide(first, "deny", by="eve")
        assert await asked(approvals) != first

    asyncio.run(scenario())


def test_what_was_approved_is_redeemed_by_the_same_call_without_its_id_and_once(
    approvals: ApprovalStore,
) -> None:
    async def scenario() -> None:
        first = await asked(approvals)
        await approvals.decide(first, "approve", by="eve")
        for other in (ASK._replace(caller="bob"), ASK._replace(session="s-2"), ASK._replace(arguments={})):
            assert await asked(approvals, other) != first
        assert await approvals.admit(ASK) == first
        assert await asked(approvals) != first

    asyncio.run(scenario())


def test_a_call_that_names_no_time_waits_as_long_as_the_settings_say(world: World) -> None:
    approvals = world.approvals(wait_s=30)

    async def scenario() -> None:
        call = asyncio.ensure_future(approvals.admit(ASK, None, None))
        while not (waiting := approvals.tickets()):
            await asyncio.sleep(0.005)
        await approvals.decide(waiting[0].id, "approve", by="eve")
        assert await call == waiting[0].id

    asyncio.run(scenario())


def test_what_has_expired_is_asked_for_anew(world: World) -> None:
    approvals = world.approvals(expires_s=60)

    async def scenario() -> None:
        first = await asked(approvals)
        world.clock.advance(60)
        assert await asked(approvals) != first
        assert state_of(approvals, first) is State.EXPIRED

    asyncio.run(scenario())


# -- redeeming


@pytest.mark.covers("002.approval.redeem")
def test_an_approved_call_runs_once(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        approval_id = await approved(approvals)
        assert await approvals.admit(ASK, approval_id) == approval_id
        assert state_of(approvals, approval_id) is State.RUNNING
        assert why(await refusal_of(approvals, ASK, approval_id)) == "used"
        approvals.finish(approval_id, is_done=True)
        await settled(approvals)
        assert state_of(approvals, approval_id) is State.DONE
        assert why(await refusal_of(approvals, ASK, approval_id)) == "used"

    asyncio.run(scenario())


def test_a_call_that_failed_has_used_its_approval(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        approval_id = await approved(approvals)
        await approvals.admit(ASK, approval_id)
        approvals.finish(approval_id, is_done=False)
        await settled(approvals)
        assert state_of(approvals, approval_id) is State.FAILED
        assert why(await refusal_of(approvals, ASK, approval_id)) == "used"

    asyncio.run(scenario())


def test_a_call_that_never_ran_gives_its_approval_back(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        approval_id = await approved(approvals)
        await approvals.admit(ASK, approval_id)
        approvals.give_back(approval_id)
        await settled(approvals)
        ticket = approvals.ticket(approval_id)
        assert ticket is not None
        assert (ticket.state, ticket.owner, ticket.started_at) == (State.APPROVED, None, None)
        assert await approvals.admit(ASK, approval_id) == approval_id

    asyncio.run(scenario())


@pytest.mark.covers("002.approval.not-consumed")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"arguments": {"cents": 20_001}}, "arguments"),
        ({"tool": "refund_all"}, "tool"),
        ({"tool_digest": "tool-2"}, "tool"),
        ({"policy_digest": "policy-2"}, "policy"),
        ({"caller": "bob"}, "unknown"),
    ],
)
def test_a_refused_redemption_does_not_use_the_approval(
    approvals: ApprovalStore, change: dict[str, Any], expected: str
) -> None:
    async def scenario() -> None:
        approval_id = await approved(approvals)
        assert why(await refusal_of(approvals, ASK._replace(**change), approval_id)) == expected
        assert state_of(approvals, approval_id) is State.APPROVED
        assert await approvals.admit(ASK, approval_id) == approval_id

    asyncio.run(scenario())


@pytest.mark.parametrize("presented", ["no-such-ticket", "", "'; DROP TABLE ticket", "\x00", "x" * 5000])
def test_an_id_that_nobody_gave_is_unknown(approvals: ApprovalStore, presented: str) -> None:
    async def scenario() -> None:
        refusal = await refusal_of(approvals, ASK, presented)
        assert refusal.reason is Reason.APPROVAL_REFUSED
        assert why(refusal) == "unknown"
        assert approvals.tickets() == []

    asyncio.run(scenario())


def test_an_approval_expires_unused(world: World) -> None:
    approvals = world.approvals(expires_s=60)

    async def scenario() -> None:
        approval_id = await approved(approvals)
        world.clock.advance(60)
        assert why(await refusal_of(approvals, ASK, approval_id)) == "expired"
        assert state_of(approvals, approval_id) is State.EXPIRED

    asyncio.run(scenario())


@pytest.mark.covers("002.approval.once")
@pytest.mark.parametrize("processes", [1, 4])
def test_of_64_redemptions_at_once_one_is_let_in(world: World, processes: int) -> None:
    all_of_them = [world.approvals() for _ in range(processes)]

    async def scenario() -> None:
        approval_id = await approved(all_of_them[0])
        outcomes = await asyncio.gather(
            *(all_of_them[number % processes].admit(ASK, approval_id) for number in range(64)),
            return_exceptions=True,
        )
        assert outcomes.count(approval_id) == 1
        refusals = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
        assert len(refusals) == 63
        assert {why(refusal) for refusal in refusals} == {"used"}

    asyncio.run(scenario())


def test_redemptions_that_read_at_the_same_time_do_not_both_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Everybody finds the ticket approved; only the transaction can tell who was first.
    approvals = world.approvals()

    async def scenario() -> None:
        approval_id = await approved(approvals)
        ticket = approvals.ticket(approval_id)

        async def read_before(_: str) -> tuple[Ticket | None, str]:
            return ticket, START

        monkeypatch.setattr(approvals, "_fetched", read_before)
        outcomes = await asyncio.gather(
            *(approvals.admit(ASK, approval_id) for _ in range(64)), return_exceptions=True
        )
        assert outcomes.count(approval_id) == 1

    asyncio.run(scenario())


def test_only_who_runs_a_call_ends_it(world: World) -> None:
    one, other = world.approvals(), world.approvals()

    async def scenario() -> None:
        approval_id = await approved(one)
        await one.admit(ASK, approval_id)
        other.finish(approval_id, is_done=False)
        other.give_back(approval_id)
        await settled(other)
        assert state_of(one, approval_id) is State.RUNNING
        one.finish(approval_id, is_done=True)
        one.give_back(approval_id)  # too late
        await settled(one)
        assert state_of(one, approval_id) is State.DONE

    asyncio.run(scenario())


def test_approvals_that_machines_share_expire_by_the_clock_of_the_database(
    tmp_path: Path, postgres_schema: str
) -> None:
    world = World(tmp_path / "none", postgres_schema)
    approvals = world.approvals(expires_s=600)

    async def scenario() -> None:
        approval_id = await approved(approvals)
        for seconds in (1e9, -2e9):  # a machine whose clock is wrong
            world.clock.advance(seconds)
            assert state_of(approvals, approval_id) is State.APPROVED
            assert approvals.count_pending() == 0
            assert await approvals.admit(ASK, approval_id) == approval_id
            await approvals.restore(approval_id)
        done = await approved(approvals, for_order(2))
        await approvals.admit(for_order(2), done)
        await approvals.complete(done)
        ticket = approvals.ticket(done)
        assert ticket is not None
        assert ticket.started_at is not None
        assert ticket.ended_at is not None
        assert ticket.started_at <= ticket.ended_at <= approvals.now() <= ticket.expires_at
        with psycopg.connect(postgres_schema, autocommit=True) as database:
            database.execute("UPDATE ticket SET expires_at = asked_at")
        assert why(await refusal_of(approvals, ASK, approval_id)) == "expired"
        assert state_of(approvals, approval_id) is State.EXPIRED
        with pytest.raises(Undecidable):
            await approvals.decide(approval_id, "deny", by="eve")

    asyncio.run(scenario())
    world.close()


# -- waiting


@pytest.mark.parametrize("is_known", [True, False], ids=["with its id", "without"])
@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_a_call_that_waits_goes_on_when_another_process_decides(
    world: World, decision: str, is_known: bool
) -> None:
    server, operator = world.approvals(), world.approvals()

    async def scenario() -> None:
        approval_id = await asked(server)
        waiter = asyncio.create_task(server.admit(ASK, approval_id if is_known else None, LONG_MS))
        while server._changes._timer is None:
            await asyncio.sleep(0)
        await operator.decide(approval_id, decision, by="eve")
        if decision == "approve":
            assert await waiter == approval_id
        else:
            with pytest.raises(Refused) as caught:
                await waiter
            assert why(caught.value) == "denied"

    asyncio.run(scenario())


def test_a_call_that_waited_in_vain_is_told_what_it_waited_for(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        with pytest.raises(Refused) as caught:
            await approvals.admit(ASK, None, 1)
        assert caught.value.reason is Reason.APPROVAL_REQUIRED
        assert caught.value.details["approval_id"] == approvals.tickets()[0].id

    asyncio.run(scenario())


def test_of_two_that_wait_for_one_approval_one_is_let_in(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        approval_id = await asked(approvals)
        waiters = [asyncio.create_task(approvals.admit(ASK, None, LONG_MS)) for _ in range(2)]
        while len(approvals._changes._waiting) < 2:
            await asyncio.sleep(0)
        await approvals.decide(approval_id, "approve", by="eve")
        outcomes = await asyncio.gather(*waiters, return_exceptions=True)
        assert outcomes.count(approval_id) == 1
        assert [why(outcome) for outcome in outcomes if isinstance(outcome, Refused)] == ["used"]

    asyncio.run(scenario())


def test_nobody_waits_longer_than_the_ticket_lives(world: World) -> None:
    approvals = world.approvals(expires_s=0.001)

    async def scenario() -> None:
        waiter = asyncio.create_task(approvals.admit(ASK, None, LONG_MS))
        while not approvals._changes._waiting:
            await asyncio.sleep(0)
        world.clock.advance(1)
        with pytest.raises(Refused) as caught:
            await waiter
        assert why(caught.value) == "expired"

    asyncio.run(scenario())


def test_a_wait_that_is_cancelled_leaves_the_ticket_to_be_decided(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        approval_id = await asked(approvals)
        waiter = asyncio.create_task(approvals.admit(ASK, approval_id, LONG_MS))
        while not approvals._changes._waiting:
            await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait([waiter])
        await approvals.decide(approval_id, "approve", by="eve")
        assert await approvals.admit(ASK, approval_id) == approval_id

    asyncio.run(scenario())


@pytest.mark.parametrize("moment", ["before it is written", "while it is written"])
def test_a_call_that_is_cancelled_while_it_redeems_gives_its_approval_back(world: World, moment: str) -> None:
    approvals = world.approvals()
    is_busy, may_go_on = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        is_busy.set()
        assert may_go_on.wait(30)

    async def scenario() -> None:
        approval_id = await approved(approvals)
        submit = approvals._store.submit

        def held(work: Any) -> Any:
            # Redeemed, and then nobody hears of it until the caller is gone.
            return submit(lambda connection: (work(connection), hold(connection))[0])

        if moment == "while it is written":
            approvals._store.submit = held
        else:
            submit(hold)
        redeeming = asyncio.create_task(approvals.admit(ASK, approval_id))
        await asyncio.to_thread(is_busy.wait, 30)
        await asyncio.sleep(0)
        redeeming.cancel()
        await asyncio.wait([redeeming])
        assert redeeming.cancelled()
        approvals._store.submit = submit
        may_go_on.set()
        await settled(approvals)
        await settled(approvals)  # the giving back was submitted when the redeeming was done
        assert state_of(approvals, approval_id) is State.APPROVED
        assert await approvals.admit(ASK, approval_id) == approval_id

    asyncio.run(scenario())


# -- deciding


@pytest.mark.covers("002.approval.operators")
def test_a_decision_says_who_when_and_why(world: World) -> None:
    approvals = world.approvals()

    async def scenario() -> None:
        approval_id = await asked(approvals)
        world.clock.advance(10)
        returned = await approvals.decide(approval_id, "deny", by="eve", reason="too much")
        kept = world.approvals().ticket(approval_id)
        assert kept == returned
        assert kept is not None
        assert (kept.state, kept.decided_by, kept.reason) == (State.DENIED, "eve", "too much")
        assert kept.decided_at == later(START, 10)
        assert why(await refusal_of(approvals, ASK, approval_id)) == "denied"

    asyncio.run(scenario())


def test_an_approval_can_be_taken_back_until_it_is_used(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        approval_id = await approved(approvals)
        await approvals.decide(approval_id, "deny", by="eve")
        assert why(await refusal_of(approvals, ASK, approval_id)) == "denied"
        used = await approved(approvals, for_order(1))
        await approvals.admit(for_order(1), used)
        with pytest.raises(Undecidable) as caught:
            await approvals.decide(used, "deny", by="eve")
        assert caught.value.state is State.RUNNING

    asyncio.run(scenario())


@pytest.mark.parametrize("approval_id", ["no-such-ticket", "", "a b"])
def test_nothing_is_decided_about_what_nobody_asked(world: World, approval_id: str, tmp_path: Path) -> None:
    with pytest.raises(Undecidable) as caught:
        asyncio.run(world.approvals().decide(approval_id, "approve", by="eve"))
    assert caught.value.state is None
    assert [*tmp_path.iterdir()] == []


def test_of_two_who_decide_at_once_the_first_decides(world: World) -> None:
    one, other = world.approvals(), world.approvals()

    async def scenario() -> None:
        approval_id = await asked(one)
        outcomes = await asyncio.gather(
            *(approvals.decide(approval_id, "approve", by="eve") for approvals in (one, other) * 10),
            return_exceptions=True,
        )
        assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 1

    asyncio.run(scenario())


def test_there_are_none_where_there_is_no_store(world: World, tmp_path: Path) -> None:
    approvals = world.approvals()
    assert approvals.tickets() == []
    assert approvals.ticket("a") is None
    assert (approvals.count_pending(), approvals.last_approved({("refund", "ada")})) == (0, {})
    assert [*tmp_path.iterdir()] == []


def test_the_last_approved_call_of_a_tool_by_a_caller_is_known(world: World) -> None:
    approvals = world.approvals()

    async def scenario() -> None:
        older = await approved(approvals, for_order(1))
        world.clock.advance(1)
        newer = await approved(approvals, for_order(2))
        others = await approved(approvals, for_order(3, caller="bob"))
        world.clock.advance(1)
        await approvals.decide(await asked(approvals, for_order(4)), "deny", by="eve")
        await asked(approvals, for_order(5))
        found = approvals.last_approved({("refund", "ada"), ("refund", "nobody")})
        assert {pair: ticket.id for pair, ticket in found.items()} == {("refund", "ada"): newer}
        assert found["refund", "ada"].shown == {"order": 2}
        await approvals.decide(newer, "deny", by="eve")
        again = approvals.last_approved({("refund", "ada"), ("refund", "bob")})
        assert {ticket.id for ticket in again.values()} == {older, others}

    asyncio.run(scenario())


def test_calls_that_wait_are_counted_until_they_are_decided_or_expire(world: World) -> None:
    approvals = world.approvals()

    async def scenario() -> None:
        first = await asked(approvals, for_order(1))
        await asked(approvals, for_order(2))
        assert approvals.count_pending() == 2
        await approvals.decide(first, "deny", by="eve")
        assert approvals.count_pending() == 1
        world.clock.advance(1_000_000)
        assert approvals.count_pending() == 0

    asyncio.run(scenario())


# -- processes that end, stores that break


@pytest.mark.covers("002.approval.unknown")
def test_a_call_whose_process_is_gone_is_unknown_and_never_runs_again(tmp_path: Path) -> None:
    world = World(tmp_path / "portbook.db")
    gone, operator = world.approvals(), world.approvals()

    async def scenario() -> None:
        approval_id = await approved(gone)
        await gone.admit(ASK, approval_id)
        assert state_of(operator, approval_id) is State.RUNNING
        gone.close()  # its lock is what tells; test_store_kills kills for it
        assert state_of(operator, approval_id) is State.UNKNOWN
        assert [ticket.id for ticket in operator.tickets(State.UNKNOWN)] == [approval_id]
        assert operator.tickets(State.RUNNING) == []
        assert why(await refusal_of(operator, ASK, approval_id)) == "used"
        with pytest.raises(Undecidable) as caught:
            await operator.decide(approval_id, "approve", by="eve")
        assert caught.value.state is State.UNKNOWN

    asyncio.run(scenario())
    world.close()


def test_a_redemption_that_nobody_can_tell_of_becomes_unknown_while_its_process_goes_on(
    tmp_path: Path, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, postgres_schema)
    approvals = world.approvals()
    commit = BoundedConnection.commit

    def lose(connection: BoundedConnection) -> None:
        commit(connection)
        connection.close()
        raise psycopg.OperationalError("the connection was lost")

    def owner_of(approval_id: str) -> str:
        ticket = approvals.ticket(approval_id)
        assert ticket is not None
        assert ticket.owner is not None
        return ticket.owner

    async def scenario() -> None:
        before, lost, after = [await approved(approvals, for_order(number)) for number in range(3)]
        await approvals.admit(for_order(0), before)
        with monkeypatch.context() as losing:
            losing.setattr(BoundedConnection, "commit", lose)
            losing.setattr(database_writer, "_RESOLVE_S", 0.0)
            with pytest.raises(UnknownOutcome):
                await approvals.admit(for_order(1), lost)
        assert owner_of(lost) == owner_of(before)  # which is kept alive as long as that call runs
        await approvals.complete(before)
        await approvals.admit(for_order(2), after)
        assert owner_of(after) != owner_of(lost)
        with psycopg.connect(postgres_schema, autocommit=True) as database:  # nobody renews it
            database.execute("UPDATE lease SET expires_at = 1 WHERE owner = %s", (owner_of(lost),))
        states = [state_of(approvals, each) for each in (before, lost, after)]
        assert states == [State.DONE, State.UNKNOWN, State.RUNNING]
        assert why(await refusal_of(approvals, for_order(1), lost)) == "used"

    asyncio.run(scenario())
    world.close()


def test_a_store_that_cannot_be_written_refuses_and_lets_nothing_in(world: World) -> None:
    approvals = world.approvals()

    async def scenario() -> None:
        approval_id = await approved(approvals)
        await asyncio.wrap_future(
            approvals._store.submit(lambda connection: connection.execute("PRAGMA busy_timeout = 0").get)
        )
        other = apsw.Connection(str(world.path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by a different process"):
            await approvals.admit(ASK, approval_id)
        other.close()
        assert await approvals.admit(ASK, approval_id) == approval_id

    asyncio.run(scenario())


def test_an_ending_that_cannot_be_written_is_warned_of(world: World) -> None:
    approvals = world.approvals()

    async def scenario() -> str:
        approval_id = await approved(approvals)
        await approvals.admit(ASK, approval_id)
        approvals._store.close()
        approvals.finish(approval_id, is_done=True)
        return approval_id

    approval_id = asyncio.run(scenario())
    assert world.warnings == [f"approval {approval_id} stays marked as running: {world.path}: closed"]


def test_what_was_finished_before_the_store_closed_is_written(tmp_path: Path) -> None:
    world = World(tmp_path / "portbook.db")

    async def scenario() -> str:
        approvals = world.approvals()
        approval_id = await approved(approvals)
        await approvals.admit(ASK, approval_id)
        approvals.finish(approval_id, is_done=True)
        return approval_id

    approval_id = asyncio.run(scenario())
    world.close()
    later_world = World(tmp_path / "portbook.db")
    assert state_of(later_world.approvals(), approval_id) is State.DONE
    later_world.close()


def test_who_only_looks_and_decides_leaves_no_lock(world: World) -> None:
    asyncio.run(approved(world.approvals()))
    assert not world.path.with_name("portbook.db-owners").exists()


@pytest.mark.parametrize("approvals", ["file"], indirect=True)
def test_ids_cannot_be_guessed_and_are_never_given_twice(approvals: ApprovalStore) -> None:
    async def scenario() -> None:
        ids = {await asked(approvals, for_order(number)) for number in range(200)}
        assert len(ids) == 200
        assert {len(bytes.fromhex(approval_id)) for approval_id in ids} == {16}

    asyncio.run(scenario())


# -- any sequence


class AnySequence(RuleBasedStateMachine):
    """Whatever happens in whatever order, a ticket moves along the table and runs at most once a yes."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = World(Path(":memory:"))
        self.approvals = self.world.approvals(expires_s=100)
        self.states: dict[str, State] = {}
        self.yes: dict[str, int] = {}
        self.runs: dict[str, int] = {}
        self.count = 0

    def do(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return self.loop.run_until_complete(work())
        except (Refused, Undecidable) as error:
            return error

    @rule(target=ids)
    def ask(self) -> tuple[int, str]:
        self.count += 1
        approval_id = self.do(lambda: asked(self.approvals, for_order(self.count)))
        self.states[approval_id] = State.PENDING
        return self.count, approval_id

    @rule(named=ids, decision=st.sampled_from(["approve", "deny"]))
    def decide(self, named: tuple[int, str], decision: str) -> None:
        was = self.states[named[1]]
        outcome = self.do(lambda: self.approvals.decide(named[1], decision, by="eve"))
        assert isinstance(outcome, Undecidable) == (
            not (was is State.PENDING or (was is State.APPROVED and decision == "deny"))
        )
        if not isinstance(outcome, Undecidable) and decision == "approve":
            self.yes[named[1]] = self.yes.get(named[1], 0) + 1

    @rule(named=ids, is_same=st.booleans())
    def redeem(self, named: tuple[int, str], is_same: bool) -> None:
        number, approval_id = named
        was = self.states[approval_id]
        ask = for_order(number if is_same else -1)
        outcome = self.do(lambda: self.approvals.admit(ask, approval_id))
        assert (outcome == approval_id) == (was is State.APPROVED and is_same)
        if outcome == approval_id:
            self.runs[approval_id] = self.runs.get(approval_id, 0) + 1

    @rule(named=ids, is_done=st.booleans())
    def finish(self, named: tuple[int, str], is_done: bool) -> None:
        self.approvals.finish(named[1], is_done=is_done)

    @rule(named=ids)
    def give_back(self, named: tuple[int, str]) -> None:
        if self.states[named[1]] is State.RUNNING:
            self.runs[named[1]] -= 1  # it never ran
        self.approvals.give_back(named[1])

    @precondition(lambda self: self.states)
    @rule(named=consumes(ids))
    def wait_until_it_has_expired(self, named: tuple[int, str]) -> None:
        self.world.clock.advance(101)

    @invariant()
    def every_ticket_moved_along_the_table(self) -> None:
        self.do(lambda: settled(self.approvals))
        for approval_id, was in self.states.items():
            now = state_of(self.approvals, approval_id)
            assert now is not None
            is_way = now is was or now in TRANSITIONS[was]
            # Given back after its time: approved for a moment nobody saw, then expired.
            assert is_way or (was, now) == (State.RUNNING, State.EXPIRED)
            self.states[approval_id] = now

    @invariant()
    def nothing_ran_more_often_than_somebody_said_yes(self) -> None:
        for approval_id, runs in self.runs.items():
            assert runs <= self.yes.get(approval_id, 0) <= 1

    def teardown(self) -> None:
        self.world.close()
        self.loop.close()


AnySequence.TestCase.settings = settings(max_examples=count("sequences of approvals"), stateful_step_count=25)
test_any_sequence_keeps_the_rules = pytest.mark.soak("sequences of approvals")(AnySequence.TestCase)
