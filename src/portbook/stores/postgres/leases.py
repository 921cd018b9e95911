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

`Lease` and `LeaseTerms` are these rules: no I/O; times are arguments, in seconds. `LeaseOwner` is this
process as the owner of the calls that it runs. Its lease is renewed in the transaction of each redemption,
and by a thread from the first one on. Who lost a lease goes on under a new name: what it owned before stays
unknown. So does who cannot know whether a redemption was written: its lease ends with the calls that run
under it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.postgres.connection_address_and_errors import COMMIT_BY
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future

    from portbook.stores.connection_clock_and_errors import Connection

__all__ = ["LEASE_TERMS", "Lease", "LeaseOwner", "LeaseTerms", "extended", "is_lost", "lease_terms"]


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


# This process as an owner.

# Of a lease that is not lost. Until the commit others read the time before, so the commit has to come first.
_NOW: Final = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
_RENEW: Final = (
    f"UPDATE lease SET expires_at = greatest(lease.expires_at, {_NOW} + ?) "  # noqa: S608 - constants
    "FROM (SELECT owner, expires_at - ? AS commit_by FROM lease WHERE owner = ? FOR UPDATE) AS before "
    f"WHERE lease.owner = before.owner AND commit_by > {_NOW} RETURNING {COMMIT_BY.format('commit_by')}"
)
_TAKE: Final = f"INSERT INTO lease (owner, expires_at) VALUES (?, {_NOW} + ?)"  # noqa: S608 - as above
_FIND: Final = f"SELECT (expires_at > {_NOW})::int FROM lease WHERE owner = ?"  # noqa: S608 - as above
# Nobody takes a lease for lost before it is deleted: a renewal that was committed may be seen late, as with a
# standby that has to confirm it. Until then its row is locked, and the lease is not lost.
_DELETE_LOST: Final = (
    "DELETE FROM lease WHERE owner IN "  # noqa: S608 - as above
    f"(SELECT owner FROM lease WHERE owner = ? AND expires_at <= {_NOW} FOR UPDATE SKIP LOCKED)"
)
# Of those that nobody asked for.
_SWEEP: Final = f"DELETE FROM lease WHERE expires_at < {_NOW} - 86400000000"  # noqa: S608 - as above


def _tick() -> float:
    """Return seconds of a clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseOwner:
    """Owns calls as long as its lease lasts."""

    def __init__(
        self,
        draw_name: Callable[[], str],
        terms: LeaseTerms,
        submit: Callable[[Callable[[Connection], bool]], Future[bool]],
        tick: Callable[[], float] = _tick,
        *,
        renew: Callable[[Callable[[Connection], bool]], Future[bool]] | None = None,
    ) -> None:
        """Own calls under names that `draw_name` returns.

        `submit` writes after all that was submitted before; `renew` writes a renewal, which must not wait for
        other work.
        """
        self._draw_name = draw_name
        self._terms = terms
        self._submit = submit
        self._submit_renewal = renew or submit
        self._tick = tick
        self._name = draw_name()
        self._abandoned: dict[str, Callable[[], bool]] = {}
        """The names that claim nothing more, and whether calls still run under each."""
        self._lease: Lease | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self) -> float:
        """Return the moment before a claim, for `confirm`."""
        return self._tick()

    def claim(self, connection: Connection) -> str:
        """Return the name under which a call may be owned; its lease is renewed in the same transaction."""
        name = self._name
        if not self.keeps(connection, name):
            name = self._name = self._draw_name()  # the lease under the name before was lost, which is final
            connection.execute(_TAKE, (name, self._length_us))
            connection.execute(_SWEEP)
        return name

    def confirm(self, name: str, since: float) -> None:
        """Note that the lease of `name` was renewed, by a request that was made after `since`."""
        lease = self._lease
        if lease is None or lease.node != name:
            lease = Lease(name, since, self._terms)
        self._lease = lease.renewed(since)
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew, name="portbook-lease", daemon=True)
            self._thread.start()

    def may_start(self, name: str) -> bool:
        """Return whether no other process can take the lease of `name` for lost, for a while at least."""
        lease = self._lease
        return lease is not None and lease.node == name and lease.may_start(self._tick())

    def keeps(self, connection: Connection, name: str) -> bool:
        """Return whether the lease of `name` is not lost, and renew it in the same transaction."""
        commit_us = round(self._terms.commit_s * 1_000_000)
        return connection.execute(_RENEW, (self._length_us, commit_us, name)).fetchone() is not None

    def abandon(self, name: str, is_used: Callable[[], bool]) -> None:
        """Claim nothing more under `name`; renew its lease only while calls run under it."""
        self._abandoned[name] = is_used
        if name == self._name:
            self._name = self._draw_name()

    def lives(self, name: str | None, connection: Connection) -> bool:
        """Return whether the lease of the owner with this name is not lost, by the clock of the database."""
        found = None if name is None else connection.execute(_FIND, (name,)).fetchone()
        if name is None or found is None:
            return False
        if found[0]:
            return True
        try:  # in a transaction of its own: this one may only read, or may be undone
            return self._submit_renewal(lambda writing: _is_left(writing, name)).result()
        except StoreError:  # whether it is lost was not written, so nobody may know that it is
            return True

    def end(self) -> None:
        """Give up the lease: all calls have ended, and are written. Before the store is closed."""
        self._ending.set()
        if self._thread is not None:
            names = (self._name, *self._abandoned)
            self._thread.join()
            with contextlib.suppress(StoreError):
                self._submit(lambda connection: _given_up(connection, names))

    def release(self) -> None:
        """Do nothing: the store gave up the lease when it was closed."""

    @property
    def _length_us(self) -> int:
        return round(self._terms.length_s * 1_000_000)

    def _renew(self) -> None:
        while not self._ending.wait(self._terms.renew_s):
            for name, is_used in tuple(self._abandoned.items()):
                if is_used():
                    self._renew_one(name)
            self._renew_one(self._name)

    def _renew_one(self, name: str) -> None:
        since = self._tick()
        with contextlib.suppress(StoreError):
            job = self._submit_renewal(lambda connection: self.keeps(connection, name))
            if job.result() and name == self._name:
                self.confirm(name, since)


def _is_left(connection: Connection, name: str) -> bool:
    """Delete a lease that has run out; return whether it is still there, because it is just being renewed."""
    connection.execute(_DELETE_LOST, (name,))
    return connection.execute(_FIND, (name,)).fetchone() is not None


def _given_up(connection: Connection, names: Iterable[str]) -> bool:
    for name in names:
        connection.execute("DELETE FROM lease WHERE owner = ?", (name,))
    return True
