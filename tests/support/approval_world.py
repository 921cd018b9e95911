"""A clock to set, calls to ask for, and a store that keeps their approvals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from portbook.access.approval_state_and_binding import Ask, State
from portbook.clock import later
from portbook.errors import Refused
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.sqlite_store import Store
from portbook.stores.store_port import StorePort

START = "2026-01-02T03:04:05.678Z"

ASK = Ask(
    tool="refund",
    arguments={"cents": 20_000},
    shown={"cents": 20_000},
    tool_digest="tool-1",
    policy_digest="policy-1",
    caller="ada",
    session="s-1",
    rule="large refunds need a person",
    place="portbook.toml:9",
)


class FixedClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> str:
        return self.time

    def tick(self) -> float:
        return 0.0

    def advance(self, seconds: float) -> None:
        self.time = later(self.time, seconds)


def for_order(number: int, **changes: Any) -> Ask:
    """A call like no other."""
    arguments = {"order": number}
    return ASK._replace(**{"arguments": arguments, "shown": arguments, **changes})


async def refusal_of(approvals: ApprovalStore, ask: Ask, approval_id: str | None = None) -> Refused:
    """What an attempt is refused with; it is an error if it is not."""
    try:
        await approvals.admit(ask, approval_id)
    except Refused as refusal:
        return refusal
    raise AssertionError("it was let in")


async def asked(approvals: ApprovalStore, ask: Ask = ASK) -> str:
    """The id of the ticket that asking makes."""
    return str((await refusal_of(approvals, ask)).details["approval_id"])


async def approved(approvals: ApprovalStore, ask: Ask = ASK) -> str:
    """The id of a ticket that an operator has approved."""
    approval_id = await asked(approvals, ask)
    await approvals.decide(approval_id, "approve", by="eve")
    return approval_id


async def settled(approvals: ApprovalStore) -> None:
    """Return once everything that was submitted is written: jobs are written in their order."""
    await asyncio.wrap_future(approvals._store.submit(lambda _: None))


class World:
    """A clock, a store, and any number of processes that share it."""

    def __init__(self, path: Path, url: str | None = None) -> None:
        """Share the file at `path`, or the database at `url`."""
        self.path = path
        self.url = url
        self.clock = FixedClock()
        self.warnings: list[str] = []
        self._opened: list[tuple[ApprovalStore, StorePort]] = []

    def approvals(self, **options: Any) -> ApprovalStore:
        store = self.store()
        made = ApprovalStore(store, self.clock, warn=self.warnings.append, poll_s=0.001, **options)
        self._opened.append((made, store))
        return made

    def store(self) -> StorePort:
        if self.url is None:
            return Store(self.path)
        from portbook.stores.postgres.postgres_store import PostgresStore

        return PostgresStore(self.url)

    def close(self) -> None:
        for approvals, store in self._opened:
            store.close()
            approvals.close()


def state_of(approvals: ApprovalStore, approval_id: str) -> State | None:
    ticket = approvals.ticket(approval_id)
    return ticket and ticket.state


def why(refusal: Refused) -> object:
    return refusal.details.get("why")
