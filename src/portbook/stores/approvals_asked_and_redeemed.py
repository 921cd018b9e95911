"""`ApprovalStore`: approvals, requested by the pipeline, decided by operators, redeemed exactly once.

`access/approval_state_and_binding.py` holds the rules. This module applies them, each step in one
transaction, so that they hold for any number of concurrent calls and processes.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from portbook.access.approval_state_and_binding import (
    TRANSITIONS,
    Ask,
    State,
    Ticket,
    Undecidable,
    binding,
    decided,
    is_id,
    refuse,
    seen,
)
from portbook.clock import Clock, later, until
from portbook.errors import Reason, Refused
from portbook.stores import approval_sql as rows
from portbook.stores.connection_clock_and_errors import (
    Connection,
    StoreError,
    UnknownOutcome,
    database_timestamp,
)
from portbook.stores.wait_for_change import POLL_S, StoreWatch

if TYPE_CHECKING:
    from portbook.stores.store_port import RunOwner, StorePort

__all__ = ["EXPIRES_S", "ApprovalStore"]

# An hour: long enough to find an operator, short enough that the call still makes sense.
EXPIRES_S: Final = 3600

# The limits of one caller's undecided approvals; no operator could read more.
_MAX_PENDING: Final = 1000
_MAX_PENDING_BYTES: Final = 64 * 1024 * 1024

# How long tickets are kept after they expire: decided ones, and undecided ones.
_KEEP_S: Final = 90 * 86400
_KEEP_UNDECIDED_S: Final = 86400


# Why an owner of calls may write no more of them.
_LOST: Final = "the lease of this process was lost, so its calls are unknown to the others"


def _draw_id() -> str:
    return os.urandom(16).hex()


class ApprovalStore:
    """The approvals of a store."""

    def __init__(
        self,
        store: StorePort,
        clock: Clock,
        *,
        expires_s: float = EXPIRES_S,
        wait_s: float = 0,
        draw_id: Callable[[], str] = _draw_id,
        warn: Callable[[str], None] = lambda _: None,
        poll_s: float = POLL_S,
    ) -> None:
        """Keep approvals in `store`; `draw_id` returns their ids, which must not be guessable."""
        self._store = store
        self._clock = clock
        self._expires_s = expires_s
        self._wait_s = wait_s
        self._draw_id = draw_id
        self._warn = warn
        self._changes = StoreWatch(store.version, poll_s=poll_s)
        self._is_stopping = False
        # The first name is drawn now: ids that are counted do not depend on when a call first runs.
        self._names = chain((draw_id(),), iter(draw_id, None))
        self._known_owner: RunOwner | None = None
        self._naming = threading.Lock()
        self._runs: dict[str, str] = {}
        """The name under which this process owns each call that it runs."""

    @property
    def _owner(self) -> RunOwner:
        """Return this process as the owner of calls; made late, because a start runs none."""
        with self._naming:  # operators' questions come from threads
            if self._known_owner is None:
                self._known_owner = self._store.owner(partial(next, self._names))
            return self._known_owner

    # -- for the pipeline

    async def admit(self, ask: Ask, approval_id: str | None = None, wait_ms: int | None = 0) -> str:
        """Return the id of the approval under which `ask` may run now, once.

        The caller must call `finish` or `give_back` in the end. Without an `approval_id`, an unused approval
        of the same call is redeemed; where there is none, one is requested. `wait_ms` is how long to wait for
        a decision; None means the time in the settings.

        Raises `Refused` where the call may not run (yet), `StoreError` where the store cannot be used.
        """
        bound = binding(self._store.key, ask)
        if approval_id is None:
            approval_id = await self._ask(ask, bound)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._wait_s if wait_ms is None else wait_ms / 1000)
        while True:
            version = self._store.version()  # read before the ticket, so that no change is missed
            ticket, now = await self._fetched(approval_id)
            refusal = refuse(ticket, ask, bound, now, approval_id)
            if refusal is None:
                return await self._redeem(approval_id, ask, bound)
            left_s = 0.0 if self._is_stopping else deadline - loop.time()
            if ticket is None or refusal.reason is not Reason.APPROVAL_REQUIRED or left_s <= 0:
                raise refusal
            await self._changes.since(version, min(left_s, until(now, ticket.expires_at)))

    def stop_waiting(self) -> None:
        """End all waits for decisions: this process is about to stop, and clients have to retry later."""
        self._is_stopping = True
        self._changes.wake()

    def may_start(self, approval_id: str) -> bool:
        """Return whether this process still owns the admitted call; ask right before it starts."""
        owner = self._runs.get(approval_id)
        return owner is not None and self._owner.may_start(owner)

    async def complete(self, approval_id: str) -> None:
        """Store that the admitted call succeeded; once this returns, the state survives a kill.

        Where it cannot be written, a warning is logged and the approval stays used.
        """
        await self._ended(approval_id, self._finishing(approval_id, State.DONE))

    async def restore(self, approval_id: str) -> None:
        """Store that the admitted call will run again; once this returns, its approval can be redeemed again.

        Where it cannot be written, a warning is logged and the approval stays used.
        """
        await self._ended(approval_id, self._giving_back(approval_id))

    def finish(self, approval_id: str, *, is_done: bool) -> None:
        """Store how the admitted call ended: it succeeded, or it failed and may have had effects.

        Never waits. Where it cannot be written, a warning is logged and the approval stays used.
        """
        self._leave(approval_id, self._finishing(approval_id, State.DONE if is_done else State.FAILED))

    def give_back(self, approval_id: str) -> None:
        """Store that the admitted call never ran: its approval can be redeemed again.

        Never waits. Where it cannot be written, a warning is logged and the approval stays used.
        """
        self._leave(approval_id, self._giving_back(approval_id))

    def _finishing(self, approval_id: str, state: State) -> Callable[[Connection], None]:
        owner = self._runs.pop(approval_id, "")
        ended_at = None if self._store.spans_machines else self._clock.now()

        def write(connection: Connection) -> None:
            self._require_kept(connection, owner)
            rows.finish(connection, approval_id, owner, state, ended_at or database_timestamp(connection))

        return write

    def _giving_back(self, approval_id: str) -> Callable[[Connection], None]:
        owner = self._runs.pop(approval_id, "")

        def write(connection: Connection) -> None:
            self._require_kept(connection, owner)
            rows.give_back(connection, approval_id, owner)

        return write

    def _require_kept(self, connection: Connection, owner: str) -> None:
        """Check that no process may take the calls of `owner` for lost: that is final."""
        if owner and not self._owner.keeps(connection, owner):
            raise StoreError(f"{self._store.place}: {_LOST}")

    async def _ended(self, approval_id: str, work: Callable[[Connection], None]) -> None:
        try:
            # Cancelling the wait does not cancel the write.
            await asyncio.shield(asyncio.wrap_future(self._store.submit(work)))
        except StoreError as error:
            self._warn(f"approval {approval_id} stays marked as running: {error}")

    async def _ask(self, ask: Ask, bound: str) -> str:
        approval_id = self._draw_id()

        def write(connection: Connection) -> str:
            now = self._now(connection)
            ticket = Ticket(
                id=approval_id,
                state=State.PENDING,
                binding=bound,
                tool=ask.tool,
                shown=ask.shown,
                tool_digest=ask.tool_digest,
                policy_digest=ask.policy_digest,
                caller=ask.caller,
                session=ask.session,
                rule=ask.rule,
                place=ask.place,
                asked_at=now,
                expires_at=later(now, self._expires_s),
            )
            return _file(connection, ticket)

        # Locked, so that two processes that are asked for the same make one ticket.
        return await asyncio.wrap_future(self._store.submit(write, lock=f"caller {ask.caller}"))

    async def _redeem(self, approval_id: str, ask: Ask, bound: str) -> str:
        since = self._owner.hold()
        claims: list[str] = []

        def write(connection: Connection) -> str:
            owner, now = self._owner.claim(connection), self._now(connection)
            claims.append(owner)
            while not rows.start(connection, approval_id, owner, bound, ask.caller, now):
                refusal = refuse(rows.find(connection, approval_id), ask, bound, now, approval_id)
                if refusal is not None:  # else it was given back in between
                    raise refusal
            return owner

        job = self._store.submit(write)
        job.add_done_callback(lambda redeemed: self._doubt(redeemed, claims))
        try:
            owner = await asyncio.shield(asyncio.wrap_future(job))
        except asyncio.CancelledError:
            if not job.cancel():  # already written: give the approval back, since the call will not run
                job.add_done_callback(lambda redeemed: self._undo(approval_id, redeemed))
            raise
        self._runs[approval_id] = owner
        self._owner.confirm(owner, since)
        return approval_id

    def _undo(self, approval_id: str, redeemed: Future[str]) -> None:
        if redeemed.exception() is None:
            self._runs[approval_id] = redeemed.result()
            self.give_back(approval_id)

    def _doubt(self, redeemed: Future[str], claims: list[str]) -> None:
        """Let the ticket become unknown where nobody can tell whether it was redeemed."""
        if not redeemed.cancelled() and isinstance(redeemed.exception(), UnknownOutcome) and claims:
            owner = claims[-1]
            self._owner.abandon(owner, lambda: owner in tuple(self._runs.values()))

    def _leave(self, approval_id: str, work: Callable[[Connection], None]) -> None:
        def warn_of(error: BaseException | None) -> None:
            if error is not None:
                self._warn(f"approval {approval_id} stays marked as running: {error}")

        try:
            job = self._store.submit(work)
        except StoreError as error:
            warn_of(error)
        else:
            job.add_done_callback(lambda done: warn_of(done.exception()))

    # -- for operators

    def tickets(self, state: State | None = None, limit: int | None = 100) -> list[Ticket]:
        """Return tickets of one state or of any, newest first; None is no `limit`.

        Raises `StoreError` where the store cannot be read.
        """

        def collect(connection: Connection) -> list[Ticket]:
            now = self._now(connection)
            written = rows.newest(connection, _written_as(state))
            current = (self._seen(ticket, now, connection) for ticket in written)
            return [*islice((one for one in current if state in (None, one.state)), limit)]

        return self._store.read(collect, [])

    def count_pending(self) -> int:
        """Return how many tickets wait for a decision.

        Raises `StoreError` where the store cannot be read.
        """
        return self._store.read(lambda connection: rows.count_pending(connection, self._now(connection)), 0)

    def now(self) -> str:
        """Return the time that the times of tickets are compared with.

        Raises `StoreError` where the store cannot be read.
        """
        return self._store.read(self._now, self._clock.now())

    def last_approved(self, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], Ticket]:
        """Return the ticket that was approved last, for each pair of a tool and a caller that has one.

        Raises `StoreError` where the store cannot be read.
        """
        tools, callers = {tool for tool, _ in pairs}, {caller for _, caller in pairs}
        nothing: dict[tuple[str, str], Ticket] = {}
        return self._store.read(lambda connection: rows.last_approved(connection, tools, callers), nothing)

    def ticket(self, approval_id: str) -> Ticket | None:
        """Return one ticket in its current state, or None.

        Raises `StoreError` where the store cannot be read.
        """
        return self._store.read(lambda connection: self._find(connection, approval_id)[0], None)

    async def decide(self, approval_id: str, decision: str, *, by: str, reason: str | None = None) -> Ticket:
        """Approve or deny a ticket, and return it. An approval that has not been used can still be denied.

        Raises `Undecidable` where the ticket does not exist or can no longer be decided, `StoreError` where
        the decision cannot be written, `KeyError` where `decision` is not a decision.
        """
        if (await self._fetched(approval_id))[0] is None:  # needs no write, and creates no file
            raise Undecidable(None)

        def write(connection: Connection) -> Ticket:
            now = self._now(connection)
            while True:  # until no other process has changed it in between
                ticket = rows.find(connection, approval_id)
                current = ticket and self._seen(ticket, now, connection)
                changed = decided(current, decision, now=now, by=by, reason=reason)
                if ticket is not None and rows.decide(connection, changed, ticket.state):
                    return changed

        return await asyncio.wrap_future(self._store.submit(write))

    def close(self) -> None:
        """Release this process's lock. Close the store first, so that ended calls are written."""
        if self._known_owner is not None:
            self._known_owner.release()

    # -- both

    def _now(self, connection: Connection) -> str:
        """Return the time by which approvals expire: that of the store where machines share it."""
        return database_timestamp(connection) if self._store.spans_machines else self._clock.now()

    async def _fetched(self, approval_id: str) -> tuple[Ticket | None, str]:
        """Return a ticket as it is, and the time of that."""
        absent = (None, self._clock.now())
        return await self._store.fetch(lambda connection: self._find(connection, approval_id), absent)

    def _find(self, connection: Connection, approval_id: str) -> tuple[Ticket | None, str]:
        now = self._now(connection)
        ticket = rows.find(connection, approval_id) if is_id(approval_id) else None
        return ticket and self._seen(ticket, now, connection), now

    def _seen(self, ticket: Ticket, now: str, connection: Connection) -> Ticket:
        is_gone = ticket.state is State.RUNNING and not self._owner.lives(ticket.owner, connection)
        return seen(ticket, now, is_owner_alive=not is_gone)


def _file(connection: Connection, ticket: Ticket) -> str:
    """Store a new ticket and return its id, or the id of a usable ticket for the same call.

    Raises `Refused` where the caller has too many undecided ones.
    """
    if (same := rows.twin(connection, ticket)) is not None:
        return same
    now = ticket.asked_at
    count, size = rows.pending(connection, ticket.caller, now)
    if count >= _MAX_PENDING or size >= _MAX_PENDING_BYTES:
        raise Refused(Reason.RATE_LIMITED, note="too many of this caller's approvals are undecided")
    rows.prune(connection, undecided_before=later(now, -_KEEP_UNDECIDED_S), before=later(now, -_KEEP_S))
    rows.insert(connection, ticket)
    return ticket.id


def _written_as(state: State | None) -> tuple[State, ...]:
    """Return the stored states of tickets that may now be in `state`."""
    if state is None:
        return tuple(State)
    if state in (
        State.EXPIRED,
        State.UNKNOWN,
    ):  # never stored: the row still has the state before it
        return tuple(past for past, following in TRANSITIONS.items() if state in following)
    return (state,)
