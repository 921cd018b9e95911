"""Leases of calls: renewed, lost by the clock of the database, and never taken up again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import Future

import psycopg
import pytest

from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.postgres.leases import LeaseOwner, LeaseTerms
from portbook.stores.postgres.postgres_store import PostgresStore
from support.postgres_server import own_server

TERMS = LeaseTerms(length_s=600.0, renew_s=300.0, margin_s=100.0)


class Ticks:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(postgres_schema: str) -> Iterator[PostgresStore]:
    made = PostgresStore(postgres_schema)
    yield made
    made.close()


@pytest.fixture
def other_store(postgres_schema: str) -> Iterator[PostgresStore]:
    made = PostgresStore(postgres_schema)
    yield made
    made.close()


def owner_in(store: PostgresStore, ticks: Ticks, terms: LeaseTerms = TERMS) -> LeaseOwner:
    numbers = itertools.count()
    return LeaseOwner(lambda: f"owner-{next(numbers)}", terms, store.submit, ticks)


def claimed(store: PostgresStore, owner: LeaseOwner) -> str:
    since = owner.hold()
    name = store.submit(owner.claim).result()
    owner.confirm(name, since)
    return name


def lose(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("UPDATE lease SET expires_at = 1")


def test_a_node_goes_by_its_own_clock_and_stops_before_the_lease_is_lost(store: PostgresStore) -> None:
    ticks = Ticks()
    owner = owner_in(store, ticks)
    assert not owner.may_start("owner-0")
    name = claimed(store, owner)
    assert owner.may_start(name)
    assert not owner.may_start("another")
    ticks.now = 499.9
    assert owner.may_start(name)
    ticks.now = 500.0  # the margin before its end
    assert not owner.may_start(name)
    assert claimed(store, owner) == name  # the database still counts it as alive
    assert owner.may_start(name)
    owner.end()


def test_a_lost_lease_stays_lost_and_its_node_goes_on_under_a_new_name(
    store: PostgresStore, postgres_schema: str
) -> None:
    owner, other = owner_in(store, Ticks()), owner_in(store, Ticks())
    name = claimed(store, owner)
    assert store.read(lambda connection: other.lives(name, connection), False)
    lose(postgres_schema)
    assert not store.read(lambda connection: other.lives(name, connection), True)
    assert not store.submit(lambda connection: owner.keeps(connection, name)).result()
    renewed = claimed(store, owner)
    assert renewed != name
    assert owner.may_start(renewed)
    assert not owner.may_start(name)
    assert not store.read(lambda connection: owner.lives(name, connection), True)
    owner.end()


def end_in(url: str, seconds: float) -> None:
    """Let every lease run out in so many seconds."""
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(
            "UPDATE lease SET expires_at = extract(epoch FROM clock_timestamp()) * 1000000 + %s",
            (seconds * 1_000_000,),
        )


def await_end(store: PostgresStore, name: str) -> None:
    """Wait until the time has passed that others read in the lease."""
    left = "SELECT count(*) FROM lease WHERE owner = ? AND expires_at > unixepoch('subsec') * 1000000"
    deadline = time.monotonic() + 60
    while store.read(lambda connection: connection.execute(left, (name,)).get, 1):
        assert time.monotonic() < deadline


@pytest.mark.parametrize("commit_s", [0.0, 1.5])
def test_a_renewal_that_would_be_committed_after_the_lease_has_run_out_is_undone(
    store: PostgresStore, other_store: PostgresStore, postgres_schema: str, commit_s: float
) -> None:
    owner, other = owner_in(store, Ticks(), TERMS._replace(commit_s=commit_s)), owner_in(other_store, Ticks())
    name = claimed(store, owner)
    kept: list[bool] = []
    seen: list[bool] = []

    def renew_slowly(connection: Connection) -> bool:
        kept.append(owner.keeps(connection, name))
        if kept[-1]:
            if commit_s:
                time.sleep(1.8)  # others still count on it, but may no longer do so when it is committed
            else:
                await_end(other_store, name)
            seen.append(other_store.read(lambda connection: other.lives(name, connection), False))
        return kept[-1]

    end_in(postgres_schema, 3.0 if commit_s else 0.5)
    assert store.submit(renew_slowly).result() is False
    assert (kept, seen) == ([True, False], [True])  # it may still be renewed as long as others can see
    await_end(other_store, name)
    assert not other_store.read(lambda connection: other.lives(name, connection), True)
    assert claimed(store, owner) != name
    owner.end()


@pytest.mark.covers("021.store.lease-stays-lost")
def test_a_renewal_that_is_seen_late_does_not_bring_a_lost_lease_back() -> None:
    """The server waits for a standby that has to confirm each commit, and is not there."""
    with own_server() as server, psycopg.connect(server.url, autocommit=True) as database:
        store, other_store = PostgresStore(server.url), PostgresStore(server.url)
        owner, other = owner_in(store, Ticks()), owner_in(other_store, Ticks())
        name = claimed(store, owner)
        assert other_store.read(lambda connection: other.lives(name, connection), False)
        end_in(server.url, 1.5)
        database.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        database.execute("SELECT pg_reload_conf()")
        while database.execute("SHOW synchronous_standby_names").fetchone() != ("nobody",):
            time.sleep(0.01)
        renewing = store.submit(lambda connection: owner.keeps(connection, name))
        await_end(other_store, name)
        seen = [other_store.read(lambda connection: other.lives(name, connection), False)]
        assert not renewing.done(), "the server did not wait: the test shows nothing"
        database.execute("ALTER SYSTEM RESET synchronous_standby_names")
        database.execute("SELECT pg_reload_conf()")
        assert renewing.result() is True
        seen.append(other_store.read(lambda connection: other.lives(name, connection), False))
        assert seen == [True, True]
        # And one that was counted as lost cannot be renewed, however its row would look.
        end_in(server.url, -1)
        assert not other_store.read(lambda connection: other.lives(name, connection), True)
        end_in(server.url, 60)
        assert not store.submit(lambda connection: owner.keeps(connection, name)).result()
        owner.end()
        store.close()
        other_store.close()


def test_leases_that_were_deleted_are_lost_too(store: PostgresStore, postgres_schema: str) -> None:
    owner = owner_in(store, Ticks())
    name = claimed(store, owner)
    with psycopg.connect(postgres_schema, autocommit=True) as database:
        database.execute("DELETE FROM lease")
    assert claimed(store, owner) != name
    owner.end()


def test_a_lease_is_renewed_while_its_process_lives_and_given_up_at_its_end(store: PostgresStore) -> None:
    owner = LeaseOwner(lambda: f"owner-{time.monotonic_ns()}", TERMS._replace(renew_s=0.01), store.submit)
    name = claimed(store, owner)

    def until_when(connection: Connection) -> int:
        return int(
            connection.execute("SELECT coalesce(max(expires_at), 0) FROM lease WHERE owner = ?", (name,)).get
        )

    first = store.read(until_when, 0)
    deadline = time.monotonic() + 60
    while store.read(until_when, 0) == first:
        assert time.monotonic() < deadline
    owner.end()
    store.submit(lambda _: None).result()
    assert store.read(until_when, 1) == 0


def test_a_renewal_that_fails_lengthens_nothing() -> None:
    ticks = Ticks()
    asked: list[float] = []

    def fail(_: object) -> Future[bool]:
        asked.append(ticks.now)
        raise StoreError("away")

    owner = LeaseOwner(lambda: "owner", TERMS._replace(renew_s=0.001), fail, ticks)
    owner.confirm("owner", 0.0)
    deadline = time.monotonic() + 60
    while not asked:
        assert time.monotonic() < deadline
    ticks.now = 500.0
    assert not owner.may_start("owner")
    owner.end()


def test_a_name_whose_claim_is_unknown_claims_nothing_more_and_is_renewed_only_while_it_is_used(
    store: PostgresStore,
) -> None:
    numbers = itertools.count()
    owner = LeaseOwner(lambda: f"owner-{next(numbers)}", TERMS._replace(renew_s=0.01), store.submit)
    first = claimed(store, owner)
    is_used = True
    asked: list[bool] = []

    def used() -> bool:
        asked.append(is_used)
        return is_used

    owner.abandon(first, used)
    second = claimed(store, owner)
    assert second != first
    assert owner.may_start(second)

    def until_when(connection: Connection) -> list[int]:
        leases = connection.execute(
            "SELECT expires_at FROM lease WHERE owner IN (?, ?) ORDER BY owner", (first, second)
        )
        return [int(row[0]) for row in leases]

    def await_renewals(of: int) -> None:
        before, deadline = store.read(until_when, [])[of], time.monotonic() + 60
        while store.read(until_when, [])[of] == before:
            assert time.monotonic() < deadline

    await_renewals(0)
    is_used = False
    deadline = time.monotonic() + 60
    while not asked or asked[-1]:  # what was submitted before that is written by then
        assert time.monotonic() < deadline
    await_renewals(1)
    last = store.read(until_when, [])[0]
    await_renewals(1)
    assert store.read(until_when, [])[0] == last
    owner.end()
    store.submit(lambda _: None).result()
    assert store.read(until_when, [0]) == []
