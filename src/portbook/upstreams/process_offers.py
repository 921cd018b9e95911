"""`ProcessOffers`: what the processes of one server offer, each judged, and together as one. Pure: no I/O.

With a process for each session, one of them can define a tool differently. A definition is served only where
no process that runs has one that is withheld.
"""

from __future__ import annotations

from typing import NamedTuple

from portbook.upstreams.declared_upstream import DeclaredUpstream
from portbook.upstreams.definitions import Offer
from portbook.upstreams.trust import Judgement

__all__ = ["JudgedOffer", "ProcessOffers"]


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
