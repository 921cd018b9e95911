"""Leases: how long a node may act on what it holds, and when every other node may count it as gone.

A node writes its lease into the store and renews it. Two clocks judge it, and neither is compared with the
other:

- Every other node goes by the clock of the database: from the time that is written in a lease, it may be
  deleted, and is lost once that is committed.
- The node itself goes by its own clock, from the moment before it asked for the last renewal that was
  acknowledged. The database wrote the new time after that moment, so the node stops first. The margin covers
  clocks of different speed, and the time between the check and the act. The clock has to go on while the
  machine sleeps.

A renewal has to be committed before the time that others still read: one that comes later is undone. It may
be seen later than that, for a commit takes a while where a standby has to confirm it. So nobody takes a lease
for lost by what it reads: it deletes the lease, which an unseen renewal prevents.

A lost lease stays lost. It is not renewed, its name is not used again, and nothing that its node owned is
written any more, however its calls ended: they are `unknown`, and never run again. A node that lost its lease
starts nothing until it holds a new one, under a new name.

Pure: no I/O; times are arguments, in seconds.
"""

from __future__ import annotations

from typing import Final

from portbook.text.named_tuple import NamedTuple

__all__ = ["LEASE_TERMS", "Lease", "LeaseTerms", "extended", "is_lost", "lease_terms"]


class LeaseTerms(NamedTuple):
    """How long leases are; the same for every node of a store."""

    length_s: float
    """From a renewal to the time at which the lease is lost, by the clock of the database."""
    renew_s: float
    """How long after one renewal the next is asked for."""
    margin_s: float
    """How long before that time its node stops to start anything."""
    commit_s: float = 0.0
    """How long before that time a renewal has to be committed: it takes a moment until others see it."""


def lease_terms(length_s: float) -> LeaseTerms:
    """Return the terms of leases that last so long."""
    return LeaseTerms(length_s, renew_s=length_s / 4, margin_s=length_s / 5, commit_s=length_s / 30)


# A database that restarts within 8 s is not noticed: two renewals fit in between. A clock may be a tenth
# slower than that of the database: 12 of its seconds then take 13.2, and leave 1.8 for the act itself.
LEASE_TERMS: Final = lease_terms(15.0)


class Lease(NamedTuple):
    """The lease of a node, as the node itself knows it."""

    node: str
    """Its name in the store, used once."""
    asked_at: float
    """When the node asked for the last renewal that was acknowledged, by its own clock."""
    terms: LeaseTerms = LEASE_TERMS

    @property
    def ends_at(self) -> float:
        """Return when the node has to stop to start anything, by its own clock."""
        return self.asked_at + self.terms.length_s - self.terms.margin_s

    def may_start(self, tick: float) -> bool:
        """Return whether the node may start what it holds; ask right before it is started."""
        return self.asked_at <= tick < self.ends_at

    def is_due(self, tick: float) -> bool:
        """Return whether the node should ask for a renewal."""
        return tick - self.asked_at >= self.terms.renew_s

    def renewed(self, asked_at: float) -> Lease:
        """Return the lease after the acknowledgement of a renewal that was asked for at `asked_at`.

        One that comes late, after that of a later renewal, changes nothing.
        """
        return self._replace(asked_at=max(self.asked_at, asked_at))


def is_lost(expires_at: float, now: float) -> bool:
    """Return whether a lease may be deleted at `now`, if nobody renews it; both are times of the database."""
    return now >= expires_at


def extended(expires_at: float, now: float, terms: LeaseTerms = LEASE_TERMS) -> float | None:
    """Return until when a lease holds after a renewal at `now`; None if it is lost, and cannot be renewed.

    Both are times of the database. The transaction that reads and writes it has to be committed by `commit_s`
    before that time, and nobody deletes it meanwhile. A clock that was set back does not shorten it.
    """
    is_late = is_lost(expires_at - terms.commit_s, now)
    return None if is_late else max(expires_at, now + terms.length_s)
