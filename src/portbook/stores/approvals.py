"""Approvals as they are kept: asked for by the pipeline, decided by operators, redeemed exactly once.

`access/approval_ticket.py` says what is allowed; here it is done, each step in one transaction, so that it
holds for any number of calls and processes at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future
from itertools import islice
from typing import Final, TypeVar

from portbook.access.approval_ticket import (
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
from portbook.stores import approval_rows as rows
from portbook.stores.connections import Connection
from portbook.stores.errors import StoreError
from portbook.stores.owners import Owner, folder_of
from portbook.stores.sqlite import Store
from portbook.stores.watch import POLL_S, StoreWatch

__all__ = ["EXPIRES_S", "ApprovalStore"]

T = TypeVar("T")

# An hour: long enough for somebody to be found, short enough that what was asked still makes sense.
EXPIRES_S: Final = 3600

# What one caller can have undecided at once; more could not be read by anybody.
_MAX_PENDING: Final = 1000
_MAX_PENDING_BYTES: Final = 64 * 1024 * 1024

# How long tickets are kept once they have expired: those that somebody decided, and those that nobody did.
_KEEP_S: Final = 90 * 86400
_KEEP_UNDECIDED_S: Final = 86400


def _draw_id() -> str:
    return os.urandom(16).hex()


class ApprovalStore:
    """The approvals of a store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        expires_s: float = EXPIRES_S,
        wait_s: float = 0,
        draw_id: Callable[[], str] = _draw_id,
        warn: Callable[[str], None] = lambda _: None,
        poll_s: float = POLL_S,
    ) -> None:
        """Keep approvals in `store`; `draw_id` names them, and nobody may be able to guess the next name."""
        self._store = store
        self._clock = clock
        self._expires_s = expires_s
        self._wait_s = wait_s
        self._draw_id = draw_id
        self._warn = warn
        self._changes = StoreWatch(store.version, poll_s=poll_s)
        self._is_stopping = False
        self._owner = Owner(None if store.is_memory else folder_of(store.path), draw_id())

    # -- for the pipeline

    async def admit(self, ask: Ask, approval_id: str | None = None, wait_ms: int | None = 0) -> str:
        """Return the id of the approval under which `ask` may run now, once.

        Whoever is let in calls `finish` or `give_back` in the end. Without an `approval_id`, one that was
        given to the same call and not used is taken, and else asked for. Where nobody has decided yet,
        `wait_ms` is how long to wait for that; None for as long as the settings say.

        Raises `Refused` where it may not run (yet), `StoreError` where the store cannot be used.
        """
        bound = binding(self._store.key, ask)
        if approval_id is None:
            approval_id = await self._ask(ask, bound)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._wait_s if wait_ms is None else wait_ms / 1000)
        while True:
            version = self._store.version()  # before the ticket is read: no change goes unnoticed
            ticket, now = self._find(approval_id), self._clock.now()
            refusal = refuse(ticket, ask, bound, now, approval_id)
            if refusal is None:
                return await self._redeem(approval_id, ask, bound)
            left_s = 0.0 if self._is_stopping else deadline - loop.time()
            if ticket is None or refusal.reason is not Reason.APPROVAL_REQUIRED or left_s <= 0:
                raise refusal
            await self._changes.since(version, min(left_s, until(now, ticket.expires_at)))

    def stop_waiting(self) -> None:
        """Tell every call that waits for a person to come back later: this process is about to end."""
        self._is_stopping = True
        self._changes.wake()

    async def complete(self, approval_id: str) -> None:
        """Note that the call that was let in ended well; when this returns, a kill no longer loses that.

        Where it cannot be written there is a warning, and the approval stays used.
        """
        owner, now = self._owner.name, self._clock.now()
        try:
            job = self._store.submit(
                lambda connection: rows.finish(connection, approval_id, owner, State.DONE, now)
            )
            await asyncio.shield(asyncio.wrap_future(job))  # whoever gives up waiting undoes nothing
        except StoreError as error:
            self._warn(f"approval {approval_id} stays marked as running: {error}")

    async def restore(self, approval_id: str) -> None:
        """Note that the call that was let in will run anew; when this returns, its approval is good again.

        Where it cannot be written there is a warning, and the approval stays used.
        """
        owner = self._owner.name
        try:
            job = self._store.submit(lambda connection: rows.give_back(connection, approval_id, owner))
            await asyncio.shield(asyncio.wrap_future(job))
        except StoreError as error:
            self._warn(f"approval {approval_id} stays marked as running: {error}")

    def finish(self, approval_id: str, *, is_done: bool) -> None:
        """Note how the call ended that was let in: well, or not, in which case it may have had effects.

        Never waits. Where it cannot be written there is a warning, and the approval stays used.
        """
        owner, now, state = (
            self._owner.name,
            self._clock.now(),
            State.DONE if is_done else State.FAILED,
        )
        self._leave(approval_id, lambda connection: rows.finish(connection, approval_id, owner, state, now))

    def give_back(self, approval_id: str) -> None:
        """Note that the call that was let in never ran: its approval is good again.

        Never waits. Where it cannot be written there is a warning, and the approval stays used.
        """
        owner = self._owner.name
        self._leave(approval_id, lambda connection: rows.give_back(connection, approval_id, owner))

    async def _ask(self, ask: Ask, bound: str) -> str:
        now = self._clock.now()
        ticket = Ticket(
            id=self._draw_id(),
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
        return await self._written(lambda connection: _file(connection, ticket))

    async def _redeem(self, approval_id: str, ask: Ask, bound: str) -> str:
        self._owner.hold()
        now = self._clock.now()

        def write(connection: Connection) -> str:
            # Asked again, now that nobody else can change it.
            refusal = refuse(rows.find(connection, approval_id), ask, bound, now, approval_id)
            if refusal is not None:
                raise refusal
            rows.start(connection, approval_id, self._owner.name, now)
            return approval_id

        job = self._store.submit(write)
        try:
            return await asyncio.shield(asyncio.wrap_future(job))
        except asyncio.CancelledError:
            if not job.cancel():  # too late to withdraw it: a call that is not made gives its approval back
                job.add_done_callback(self._undo)
            raise

    def _undo(self, redeemed: Future[str]) -> None:
        if redeemed.exception() is None:
            self.give_back(redeemed.result())

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

    def tickets(self, state: State | None = None, limit: int = 100) -> list[Ticket]:
        """Return the newest tickets, of one state or of any, newest first.

        Raises `StoreError` where the store cannot be read.
        """
        now = self._clock.now()

        def collect(connection: Connection) -> list[Ticket]:
            with contextlib.closing(rows.newest(connection, _written_as(state))) as written:
                current = (self._seen(ticket, now) for ticket in written)
                return [*islice((one for one in current if state in (None, one.state)), limit)]

        return self._store.read(collect, [])

    def ticket(self, approval_id: str) -> Ticket | None:
        """Return one ticket as it is now.

        Raises `StoreError` where the store cannot be read.
        """
        ticket = self._find(approval_id)
        return ticket and self._seen(ticket, self._clock.now())

    async def decide(self, approval_id: str, decision: str, *, by: str, reason: str | None = None) -> Ticket:
        """Approve or deny; return the ticket as it is then. An approval not used yet can still be denied.

        Raises `Undecidable` where there is no such ticket or it is too late, `StoreError` where the decision
        cannot be written, `KeyError` for a word that is no decision.
        """
        now = self._clock.now()
        if self._find(approval_id) is None:  # nobody has to wait for that, and no file is made for it
            raise Undecidable(None)

        def write(connection: Connection) -> Ticket:
            ticket = rows.find(connection, approval_id)
            changed = decided(ticket and self._seen(ticket, now), decision, now=now, by=by, reason=reason)
            rows.decide(connection, changed)
            return changed

        return await self._written(write)

    def close(self) -> None:
        """Let go of what this process owns. Close the store before, so that what has ended is written."""
        self._owner.release()

    # -- both

    def _find(self, approval_id: str) -> Ticket | None:
        if not is_id(approval_id):
            return None
        return self._store.read(lambda connection: rows.find(connection, approval_id), None)

    def _seen(self, ticket: Ticket, now: str) -> Ticket:
        is_gone = ticket.state is State.RUNNING and not self._owner.lives(ticket.owner)
        return seen(ticket, now, is_owner_alive=not is_gone)

    async def _written(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.wrap_future(self._store.submit(work))


def _file(connection: Connection, ticket: Ticket) -> str:
    """Keep a new ticket, or return the id of one that asks for the same and can still be used.

    Raises `Refused` where its caller has too many of them.
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
    """Return the states in which tickets that are now in `state` may have been written down."""
    if state is None:
        return tuple(State)
    if state in (
        State.EXPIRED,
        State.UNKNOWN,
    ):  # which nobody writes: it is written as what came before
        return tuple(past for past, following in TRANSITIONS.items() if state in following)
    return (state,)
