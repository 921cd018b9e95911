"""The goals, as rows: what is compared with what, and what was reached.

A goal is a ratio within one run, never an absolute figure. Where more is better, the ratio has to be at least
as large as the goal; otherwise at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.figures import Figure, figure, ratios
from bench.peers import PEERS
from bench.rounds import Measured

__all__ = ["GOALS", "Goal", "Reached", "judged"]

_SDK, _, _TYPESCRIPT, _BARE = PEERS
_FASTER: Final = "times the SDK's calls per second"


@dataclass(frozen=True, slots=True)
class Goal:
    """One row of the table: a ratio to reach."""

    what: str
    unit: str
    must: float
    aim: float | None
    more_is_better: bool
    measured: Callable[[Measured], Figure | None]


@dataclass(frozen=True, slots=True)
class Reached:
    """A goal, and the ratio that was measured; None where a server was left out."""

    goal: Goal
    ratio: Figure | None

    @property
    def verdict(self) -> str:
        """Return `aim`, `must`, `no`, or `not measured`."""
        if self.ratio is None:
            return "not measured"
        if self._holds(self.goal.aim):
            return "aim"
        return "must" if self._holds(self.goal.must) else "no"

    def _holds(self, bound: float | None) -> bool:
        if bound is None or self.ratio is None:
            return False
        return self.ratio.median >= bound if self.goal.more_is_better else self.ratio.median <= bound


def judged(measured: Measured) -> list[Reached]:
    """Return every goal with what was reached."""
    return [Reached(goal, goal.measured(measured)) for goal in GOALS]


def _against(ours: str, theirs: str, field: str) -> Callable[[Measured], Figure | None]:
    return lambda measured: ratios(measured.runs.get(ours, ()), measured.runs.get(theirs, ()), field)


def _throughput(name: str, title: str) -> Goal:
    return Goal(title, _FASTER, 10, 30, True, _against(name, _SDK, "calls_per_second"))


def _growth_of_tools(measured: Measured) -> Figure | None:
    """Return the processor time of a call with the most tools, beside the one with the fewest."""
    few, many = (f"{count:,} tools" for count in (min(measured.size.tools), max(measured.size.tools)))
    return ratios(measured.runs.get(many, ()), measured.runs.get(few, ()), "cpu_us")


def _growth_of_payload(measured: Measured) -> Figure | None:
    """Return what a large payload costs beyond a small one, beside parse, validate and serialise alone."""
    small, large = min(measured.size.payload_kb), max(measured.size.payload_kb)
    runs = measured.runs
    pairs = zip(
        runs.get(f"payload {small:,} kB", ()),
        runs.get(f"payload {large:,} kB", ()),
        measured.floors_us[small],
        measured.floors_us[large],
        strict=False,
    )
    return figure((most.cpu_us - least.cpu_us) / (above - below) for least, most, below, above in pairs)


GOALS: Final[tuple[Goal, ...]] = (
    Goal("STDIO, pipelined", _FASTER, 30, 100, True, _against("portbook", _SDK, "calls_per_second")),
    Goal(
        "STDIO, pipelined",
        "times TypeScript's calls per second",
        1,
        3,
        True,
        _against("portbook", _TYPESCRIPT, "calls_per_second"),
    ),
    Goal("an inline tool", _FASTER, 30, 100, True, _against("inline", _SDK, "calls_per_second")),
    _throughput("with a key", "with a key"),
    _throughput("policy with where", "a policy with `where`"),
    _throughput("recorded arguments", "recorded arguments"),
    _throughput("effect write", '`effect="write"`, the intent recorded first'),
    _throughput("in a thread", "a plain function in a thread"),
    _throughput("envelope with provenance", "an envelope with provenance"),
    _throughput("envelope dialect", "the envelope dialect"),
    _throughput("bare dialect", "the bare dialect"),
    Goal(
        "STDIO, one at a time",
        "times the SDK's p50",
        1 / 6,
        None,
        False,
        _against("portbook", _SDK, "p50_us"),
    ),
    Goal(
        "STDIO, one at a time",
        "times the bare loop's p50",
        1.25,
        None,
        False,
        _against("portbook", _BARE, "p50_us"),
    ),
    Goal(
        "start to first answer, a pydantic toolset",
        "times the SDK's time",
        1 / 3,
        1 / 5,
        False,
        _against("portbook", _SDK, "start_ms"),
    ),
    Goal(
        "start to first answer, without pydantic",
        "times the SDK's time",
        1 / 6,
        1 / 10,
        False,
        _against("without pydantic", _SDK, "start_ms"),
    ),
    Goal("memory, idle", "times the SDK's", 0.65, 0.45, False, _against("portbook", _SDK, "idle_mib")),
    Goal(
        "most tools beside fewest",
        "times the processor time of a call",
        1.1,
        None,
        False,
        _growth_of_tools,
    ),
    Goal(
        "largest payload",
        "times parse, validate and serialise alone",
        1.5,
        None,
        False,
        _growth_of_payload,
    ),
)
