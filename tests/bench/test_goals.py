from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.counts import Counts
from bench.figures import Run
from bench.gateways import OVER_STDIO
from bench.goals import GOALS, judged
from bench.peers import PEERS
from bench.rounds import Measured
from bench.scenarios import Size, scenarios

SIZE = Size(1, 10, 10, 1, (10, 10_000), (1, 1_000))
SDK, _, TYPESCRIPT, BARE = PEERS


def verdicts(
    runs: Mapping[str, Sequence[Run]], floors: Mapping[int, list[float]], counts: Counts | None = None
) -> dict[str, str]:
    measured = Measured(SIZE, {name: list(own) for name, own in runs.items()}, dict(floors), {}, counts)
    return {f"{reached.goal.what}: {reached.goal.unit}": reached.verdict for reached in judged(measured)}


def test_a_goal_is_reached_from_above_or_from_below() -> None:
    sdk = Run(100, 1000, 600, 1000, 600, 100)
    found = verdicts(
        {
            SDK: [sdk],
            "portbook": [Run(9_999, 20, 100, 250, 200, 44)],
            "inline": [Run(9_999, 34)],
            "10 tools": [Run(1, 100)],
            "10,000 tools": [Run(1, 111)],
            "payload 1 kB": [Run(1, 50)],
            "payload 1,000 kB": [Run(1, 1_550)],
            "floor 1 kB": [Run(1, 40)],
            "floor 1,000 kB": [Run(1, 1_030)],
        },
        {1: [10.0], 1_000: [1_010.0]},
    )
    assert found["STDIO, pipelined: times the SDK's calls"] == "must"
    assert found["an inline tool: times the SDK's calls"] == "no"
    assert found["STDIO, one at a time: times the SDK's p50"] == "must"
    assert found["start to first answer, a pydantic toolset: times the SDK's start"] == "must"
    assert found["memory, idle: times the SDK's"] == "aim"
    assert found["most tools beside fewest: times the CPU of a call"] == "no"
    assert found["largest payload: times parse, validate, serialise alone"] == "must"
    assert found["largest payload: times the same over the same pipes"] == "no"
    assert found["STDIO, pipelined: times TypeScript's calls"] == "not measured"


def test_a_gateway_is_compared_with_the_best_of_the_others_that_could_be_measured() -> None:
    slow, fast = OVER_STDIO
    ours = {"through portbook": [Run(5_000, 100)]}
    goal = "a fast server behind, STDIO: times the best gateway's calls"
    floors = {1: [10.0], 1_000: [1_010.0]}
    assert verdicts({**ours, slow: [Run(100, 5_000)]}, floors)[goal] == "aim"
    assert verdicts({**ours, slow: [Run(100, 5_000)], fast: [Run(400, 1_500)]}, floors)[goal] == "must"
    assert verdicts({**ours, slow: [Run(100, 5_000)], fast: [Run(900, 900)]}, floors)[goal] == "no"
    assert verdicts(ours, floors)[goal] == "not measured"


def test_every_goal_speaks_of_rows_that_exist() -> None:
    runs = {row.name: [Run(1, 2, 1, 1, 1, 1, 1, 1)] for row in scenarios(SIZE)}
    runs["payload 1,000 kB"] = runs["floor 1,000 kB"] = [Run(1, 3, 1, 1, 1, 1)]
    counts = Counts(1, 1.0, 1.0, 1, 1)
    assert "not measured" not in verdicts(runs, {1: [1.0], 1_000: [2.0]}, counts).values()
    assert len(GOALS) > 15


def test_counts_are_compared_as_they_are() -> None:
    found = verdicts({}, {1: [1.0], 1_000: [2.0]}, Counts(120_001, 61.0, 53.0, 15, 120_000))
    assert found["a plain call over STDIO: instructions executed"] == "must"
    assert found["a plain call over STDIO: instructions under callgrind"] == "no"
    assert found["a call alone in its read: calls of our functions"] == "no"
    assert found["a call among 32: calls of our functions"] == "must"
    assert found["a call: files of ours"] == "must"
    without = verdicts({}, {1: [1.0], 1_000: [2.0]}, Counts(None, 61.0, 53.0, 15))
    assert without["a plain call over STDIO: instructions executed"] == "not measured"
    assert without["a plain call over STDIO: instructions under callgrind"] == "not measured"
