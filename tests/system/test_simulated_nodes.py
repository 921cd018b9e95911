"""Nodes with leases in simulated time: no call runs twice, and none runs without its intent on disk."""

from __future__ import annotations

from collections import Counter

import pytest

from portbook.stores.postgres.leases import LEASE_TERMS, Lease, LeaseTerms
from support.counts import count, seed
from support.simulated_nodes import Broken, Rules, Simulation

MOST_RUNS = 3_000
"""In which a broken rule has to show."""


def unchecked(_: Lease, __: float) -> bool:
    return True


def always_extended(_: float, now: float, terms: LeaseTerms) -> float:
    return now + terms.length_s


BROKEN = {
    "no margin": Rules(terms=LEASE_TERMS._replace(margin_s=0.0)),
    "a start after the lease has lapsed": Rules(may_start=unchecked),
    "a lease that counts from the answer": Rules(counts_from_asking=False),
    "a start under a newer lease": Rules(checks_owner=False),
    "a redemption that does not compare": Rules(compares=False),
    "a lost lease that is renewed": Rules(extended=always_extended),
    "a lost lease that is read and not written down": Rules(deletes_lost=False),
    "an end that is written after the lease was lost": Rules(keeps=False),
    "a redemption given back in place of an earlier one": Rules(names_redemption=False),
    "a run on a redemption in doubt": Rules(runs_in_doubt=True),
    "a start before the intent": Rules(intends_first=False),
}


@pytest.mark.soak("simulated nodes")
@pytest.mark.covers("021.nodes.simulated")
def test_no_call_runs_twice_or_without_its_intent_whatever_happens_to_nodes_and_messages() -> None:
    happened: Counter[str] = Counter()
    for number in range(count("simulated nodes")):
        chosen = seed() * 1_000_000 + number
        try:
            happened += Simulation(chosen, Rules()).run()
        except Broken as broken:
            pytest.fail(f"seed {chosen}: {broken}")
    # What a run is to show has to come up in the runs.
    for each in (
        *("ran", "done", "kill", "hang", "database away", "request lost", "request repeated", "answer lost"),
        *("lease lost", "too late to start", "given back", "redemption in doubt", "end not written"),
        *(
            "commit seen late",
            "wait for a row",
            "unknown, and asked anew",
            "ended unknown",
            "ended done",
            "disk full",
        ),
    ):
        assert happened[each] > 5, f"{each}: the runs show nothing"


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_that_is_broken_is_found(name: str) -> None:
    for number in range(MOST_RUNS):
        try:
            Simulation(number, BROKEN[name]).run()
        except Broken:
            return
    pytest.fail(f"{MOST_RUNS} runs did not find it")


def test_a_seed_repeats_a_run() -> None:
    assert Simulation(7, Rules()).run() == Simulation(7, Rules()).run()
