"""How long a node may act, on clocks of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.stores.postgres.leases import LEASE_TERMS, Lease, LeaseTerms, extended, is_lost

TERMS = LeaseTerms(length_s=10.0, renew_s=3.0, margin_s=2.0)


@pytest.mark.parametrize(
    ("tick", "may_start"),
    [(99.0, False), (100.0, True), (107.9, True), (108.0, False), (200.0, False)],
)
def test_a_node_starts_nothing_from_the_margin_on(tick: float, may_start: bool) -> None:
    assert Lease("a", 100.0, TERMS).may_start(tick) is may_start


def test_a_renewal_counts_from_when_it_was_asked_for() -> None:
    lease = Lease("a", 100.0, TERMS)
    assert [lease.is_due(tick) for tick in (100.0, 102.9, 103.0)] == [False, False, True]
    assert lease.renewed(103.0).ends_at == 111.0


def test_an_acknowledgement_that_comes_late_does_not_shorten_a_lease() -> None:
    assert Lease("a", 106.0, TERMS).renewed(103.0).asked_at == 106.0


@pytest.mark.parametrize(
    ("expires_at", "now", "until"),
    [
        (10.0, 5.0, 15.0),
        (10.0, 9.75, 19.75),
        (10.0, 10.0, None),
        (10.0, 11.0, None),
        (30.0, 5.0, 30.0),  # the clock was set back
    ],
)
def test_only_a_lease_that_is_not_lost_is_renewed(expires_at: float, now: float, until: float | None) -> None:
    assert extended(expires_at, now, TERMS) == until
    assert is_lost(expires_at, now) is (until is None)


@pytest.mark.parametrize(("now", "until"), [(9.4, 19.4), (9.5, None), (9.9, None), (10.0, None)])
def test_a_renewal_that_cannot_be_committed_in_time_is_not_begun(now: float, until: float | None) -> None:
    assert extended(10.0, now, TERMS._replace(commit_s=0.5)) == until
    assert is_lost(10.0, now) is (now >= 10.0)  # others still count on it until its end


@given(
    asked=st.floats(0, 1000),
    reached_s=st.floats(0, 60),
    slowness=st.floats(0.9, 1.1),
    started_s=st.floats(0, 60),
    act_s=st.floats(0, 1.8),
)
def test_what_a_node_may_start_begins_before_any_other_node_counts_it_as_gone(
    asked: float, reached_s: float, slowness: float, started_s: float, act_s: float
) -> None:
    """Its clock runs up to a tenth too slow or too fast, and 1.8 s pass between the check and the act."""
    lease = Lease("a", asked * slowness)
    expires_at = asked + reached_s + LEASE_TERMS.length_s
    checked = asked + started_s
    if lease.may_start(checked * slowness):
        assert not is_lost(expires_at, checked + act_s - 1e-6)


def test_several_renewals_may_fail_before_a_lease_is_of_no_use() -> None:
    assert LEASE_TERMS.renew_s * 2 < LEASE_TERMS.length_s - LEASE_TERMS.margin_s
