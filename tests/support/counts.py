"""How many times the checks run that run many times: a few in every run of the tests, many in a soak.

Each row is a promise. A test asks for its count with `count("server kills")`, and names the row with
`@pytest.mark.soak("server kills")` so that a soak runs it and reports on it. Chance comes from `seed()`: the
same in every run of the tests, another one in each soak, which says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Count:
    quick: int
    """In every run of the tests."""
    long: int
    """In a soak."""
    promise: str
    """What holds, with the place of the `count`, and of the number of `tests` where it helps."""


COUNTS: Final = {
    "server kills": Count(
        20,
        200,
        "{count:,} kills of servers under load: no record and no approval lost, none twice",
    ),
    "worker kills": Count(
        3,
        200,
        "{count:,} kills of workers under load: nothing lost, nothing twice, each started again",
    ),
    "worker redemptions": Count(
        1,
        200,
        "{count:,} approvals redeemed 64 times at once over three workers: each ran once",
    ),
    "store kills": Count(
        60,
        2_000,
        "{count:,} kills of processes that share a store: nothing acknowledged is lost, nothing ran twice",
    ),
    "shared redemptions": Count(
        3,
        200,
        "{count:,} times 64 redemptions at once over 3 nodes on PostgreSQL: one execution each",
    ),
    "node kills": Count(
        12,
        500,
        "{count:,} kills of nodes on PostgreSQL under load, with approvals and writes: none lost, none "
        "twice, doubts unknown",
    ),
    "database kills": Count(
        2,
        100,
        "{count:,} kills of PostgreSQL under the load of 3 nodes: no approval lost, none twice, doubts "
        "unknown",
    ),
    "log kills": Count(
        8,
        200,
        "{count:,} kills of writers of records: nothing acknowledged is lost, the chain is whole",
    ),
    "simulated nodes": Count(
        300,
        20_000,
        "{count:,} simulated runs of nodes with leases, drifting clocks, lost and repeated messages, kills: "
        "nothing ran twice, nothing without its intent",
    ),
    "upstream kills": Count(
        5,
        200,
        "{count:,} starts and kills of a server whose grandchild hangs, and of Portbook: no process left",
    ),
    "conformance selections": Count(
        5,
        8,
        "{count:,} selections of the official suite, by revision and by requirements: every scenario passes",
    ),
    "conformance ways": Count(
        6,
        10,
        "{count:,} ways of the official suite's server behind Portbook, by transport and revision: every "
        "scenario passes",
    ),
    "doors of deployments": Count(
        1,
        8,
        "{count:,} HTTP doors of workers and of nodes for every verdict: the same as of one process",
    ),
    "changes noticed late": Count(
        7,
        21,
        "{count:,} changes of definitions and their settings, on each occasion after the start: served or "
        "withheld, whenever they are noticed",
    ),
    "adoption kills": Count(
        4,
        100,
        "{count:,} kills of an adoption at most, one at each of its steps: every file is old or new, and "
        "undoing gives all back",
    ),
    "upstream restarts": Count(
        3,
        200,
        "{count:,} kills of a server behind one Portbook, each started again: no process, no descriptor left",
    ),
    "restarts": Count(
        1,
        20,
        "{count:,} replacements of a server under load, for each of {tests} signals: every session goes on",
    ),
    "wheel pythons": Count(
        1,
        4,
        "{count:,} Pythons at most, those at hand: the wheel alone serves in a clean environment of each",
    ),
    "idle and slow clients": Count(
        40,
        2_000,
        "{count:,} silent and as many slow HTTP clients: the others are served, and all are closed in time",
    ),
    "http framings": Count(
        300,
        200_000,
        "{count:,} streams of bytes that are almost HTTP: what is accepted is framed as h11 frames it",
    ),
    "altered frames": Count(
        150,
        50_000,
        "{count:,} frames altered by chance, for each of {tests} checks: at most one answer and one record "
        "each, and the next one is served",
    ),
    "requests compared": Count(
        25,
        2_000,
        "{count:,} requests of imported operations, for each of {tests} comparisons: a server reads the same",
    ),
    "broken documents": Count(
        100,
        20_000,
        "{count:,} broken documents for each of {tests} properties: the verdict of a second strict parser",
    ),
    "broken messages": Count(
        2,
        50,
        "{count:,} messages for each of {tests} types of MCP, each broken in 12 ways too: "
        "the verdict of another implementation",
    ),
    "random schemas": Count(
        60,
        5_000,
        "{count:,} schemas made by chance for each of {tests} properties: verdicts, findings and comparisons "
        "are right",
    ),
    "hidden secrets": Count(
        100,
        5_000,
        "{count:,} values around a secret for each of {tests} properties: it never survives redaction",
    ),
    "altered bytes": Count(
        60,
        5_000,
        "{count:,} altered bytes in each of {tests} kinds of signed or chained text: each one is found",
    ),
    "canonical forms": Count(
        60,
        5_000,
        "{count:,} values for each of {tests} properties: one canonical form, that of another implementation",
    ),
    "sequences of approvals": Count(
        15,
        1_000,
        "{count:,} sequences of asking, deciding and running: no approval is good for two runs",
    ),
    "requests by the description": Count(
        3,
        200,
        "{count:,} requests made from each part of the OpenAPI document: every answer is as promised",
    ),
    "load balancers": Count(
        0,
        600,
        "{count:,} calls of one session over three servers, behind each of {tests} balancers, one server "
        "stopped meanwhile: every call is answered",
    ),
    "vendor documents": Count(
        0,
        2_639,
        "{count:,} OpenAPI documents of vendors: each starts, and 97 % of their operations are served",
    ),
    "hostile texts": Count(
        50_000,
        2_000_000,
        "{count:,} characters in each of {tests} hostile texts: the search for secrets stays linear",
    ),
    "costly values": Count(
        10_000,
        200_000,
        "{count:,} bytes in each of {tests} costly values: redaction takes a few calls for each",
    ),
    "large documents": Count(
        50_000,
        2_000_000,
        "{count:,} parts in each of {tests} large documents: checked with a verdict and a short report",
    ),
    "properties": Count(
        25,
        2_000,
        "{count:,} examples of each of {tests} other properties",
    ),
}


class _Tier:
    """Which of the two counts this run takes. Set once, before any test is collected."""

    soak_seed: int | None = None


def choose(soak_seed: int | None) -> None:
    """Take the long counts, with this seed; or the quick ones, for None."""
    _Tier.soak_seed = soak_seed


def count(name: str) -> int:
    """How many times the check of this name runs."""
    found = COUNTS[name]
    return found.quick if _Tier.soak_seed is None else found.long


def seed() -> int:
    """Where chance starts."""
    return 0 if _Tier.soak_seed is None else _Tier.soak_seed
