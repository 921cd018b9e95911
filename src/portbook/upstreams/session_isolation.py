"""The processes of one server, or the connections to it: one for all callers, or one for each session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, NamedTuple

from portbook.upstreams.announced_changes import ChangedLists
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.transport import NotSent
from portbook.upstreams.trust_by_lock import Judgement

__all__ = ["Instance", "InstanceOwner", "Instances", "JudgedOffer", "ProcessOffers"]

# `ProcessOffers`: what the processes of one server offer, each judged, and together as one.
#
# With a process for each session, one of them can define a tool differently. A definition is served only
# where no process that runs has one that is withheld.


class JudgedOffer(NamedTuple):
    """What one process offers, and what becomes of it."""

    offer: Offer
    judgement: Judgement


class ProcessOffers:
    """The offers of one server; the one that was taken last is the last."""

    def __init__(self, declared: DeclaredUpstream) -> None:
        self.declared = declared
        self._judged: dict[object, JudgedOffer] = {}
        self._ended: object = None

    def take(self, process: object, judged: JudgedOffer) -> None:
        """Take what a process offers now, in place of what it offered before."""
        self._judged.pop(self._ended, None)
        self._ended = None
        self._judged.pop(process, None)
        self._judged[process] = judged

    def judge_again(self, process: object, judged: JudgedOffer) -> None:
        """Take a new judgement on what a process offers, unless the process is gone by now."""
        if process in self._judged:
            self._judged[process] = judged

    def end(self, process: object) -> bool:
        """Forget a process that has ended; return whether that may change what is served.

        What the last one offered is offered until the next one begins.
        """
        if process not in self._judged:
            return False
        if len(self._judged) == 1:
            self._ended = process
            return False
        del self._judged[process]
        return True

    def of_each(self) -> list[tuple[object, Offer]]:
        """Return what each process offers."""
        return [(process, judged.offer) for process, judged in self._judged.items()]

    @property
    def latest(self) -> Offer:
        """Return the offer that was taken last."""
        return next(reversed(self._judged.values())).offer

    def judgement(self) -> Judgement:
        """Return what becomes of all of them: by the latest, without what is withheld of any."""
        judgements = [judged.judgement for judged in reversed(self._judged.values())]
        withheld = {
            (each.observed.kind, each.observed.name): each
            for judgement in reversed(judgements)
            for each in judgement.withheld
        }
        served = (each for each in judgements[0].served if (each.kind, each.name) not in withheld)
        words = {judgement.instructions for judgement in judgements}
        return Judgement(
            tuple(served),
            tuple(withheld.values()),
            any(judgement.is_pending for judgement in judgements),
            words.pop() if len(words) == 1 else None,
        )


# Sessions are as many as clients like, and a process takes tens of megabytes.
_MAX_OWNED: Final = 64


class InstanceOwner(NamedTuple):
    """Whose process it is, where each session has its own; without a session, each caller."""

    caller: str | None
    """Part of it, because a session is what a caller names: nobody else's is meant by it."""
    session: str | None


class Instance:
    """One process of the server, or one connection to it."""

    def __init__(self, owner: InstanceOwner | None) -> None:
        self.owner = owner
        """None where it is for everybody."""
        self.connection: UpstreamConnection | None = None
        self.starting: asyncio.Task[UpstreamConnection] | None = None
        self.began_at = 0.0
        self.used_at = 0.0
        self.failures = 0
        self.retry_at = 0.0
        self.lists: ChangedLists | None = None
        """What it has announced of its lists; None before the first time."""
        self.idle: asyncio.TimerHandle | None = None
        self.again: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether it starts, or has requests under way."""
        return self.starting is not None or (self.connection is not None and self.connection.is_busy)

    def cancel_timers(self) -> None:
        """Wait for nothing any more."""
        for timer in (self.idle, self.again):
            if timer is not None:
                timer.cancel()
        self.idle = self.again = None


class Instances:
    """All of one server."""

    def __init__(self) -> None:
        self._found: dict[InstanceOwner | None, Instance] = {}

    def __iter__(self) -> Iterator[Instance]:
        return iter(tuple(self._found.values()))

    def find(self, owner: InstanceOwner | None) -> Instance | None:
        """Return the instance of an owner, None where there is none."""
        return self._found.get(owner)

    def add(self, owner: InstanceOwner | None) -> Instance:
        """Return a new instance."""
        made = self._found[owner] = Instance(owner)
        return made

    def surplus(self) -> Instance | None:
        """Return the instance that has to go before one more session gets its own, None where none has to.

        Raises `NotSent` where all of them are busy.
        """
        owned = [each for each in self if each.owner is not None]
        if len(owned) < _MAX_OWNED:
            return None
        idle = [each for each in owned if not each.is_busy]
        if not idle:
            raise NotSent(f"{len(owned)} sessions have a process of it already, and all are busy")
        return min(idle, key=lambda each: each.used_at)

    def of_session(self, session: str) -> list[Instance]:
        """Return the instances of a session."""
        return [each for each in self if each.owner is not None and each.owner.session == session]

    def drop(self, instance: Instance) -> None:
        """Forget an instance."""
        if self._found.get(instance.owner) is instance:
            del self._found[instance.owner]

    def connection(self) -> UpstreamConnection | None:
        """Return the connection of any of them, None where there is none."""
        return next((each.connection for each in self if each.connection is not None), None)
