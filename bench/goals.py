"""The goals, as rows: what is compared with what, and what was reached.

A goal is a ratio within one run, never an absolute figure. Where more is better, the ratio has to be at least
as large as the goal; otherwise at most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

from bench.figures import Figure, figure, ratios
from bench.gateways import OVER_HTTP, OVER_STDIO
from bench.peers import PEERS
from bench.rounds import Measured

__all__ = ["GOALS", "Goal", "Reached", "judged"]

_SDK, _, _TYPESCRIPT, _BARE = PEERS

_MCP, _SDK_MCP = "portbook over http", "sdk over http"
_BARE_HTTP = "bare httptools"
_RPC, _EXECUTE = "portbook over http, /rpc", "portbook over http, /execute"

_CROWDED = "portbook over http, in a crowd"
_API, _CLIENT = "a tool of an HTTP API", "our HTTP client alone"

_Ratio: TypeAlias = Callable[[Measured], Figure | None]


@dataclass(frozen=True, slots=True)
class Goal:
    """One row of the table: a ratio to reach."""

    what: str
    unit: str
    must: float | None
    """None where the ratio is only an aim."""
    aim: float | None
    more_is_better: bool
    measured: _Ratio
    by_cpu: _Ratio | None = None
    """The same by processor time, which the other work of a machine disturbs least."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A goal, and the ratio that was measured; None where a server was left out."""

    goal: Goal
    ratio: Figure | None
    by_cpu: Figure | None

    @property
    def verdict(self) -> str:
        """Return `aim`, `must`, `no`, or `not measured`; by processor time, where a goal knows it."""
        if self.ratio is None:
            return "not measured"
        if self._holds(self.goal.aim):
            return "aim"
        return "must" if self._holds(self.goal.must) else "no"

    def _holds(self, bound: float | None) -> bool:
        decisive = self.by_cpu or self.ratio
        if bound is None or decisive is None:
            return False
        return decisive.median >= bound if self.goal.more_is_better else decisive.median <= bound


def judged(measured: Measured) -> list[Reached]:
    """Return every goal with what was reached."""
    return [
        Reached(goal, goal.measured(measured), None if goal.by_cpu is None else goal.by_cpu(measured))
        for goal in GOALS
    ]


def _against(ours: str, theirs: str, field: str) -> _Ratio:
    return lambda measured: ratios(measured.runs.get(ours, ()), measured.runs.get(theirs, ()), field)


def _growth_of_tools(measured: Measured) -> Figure | None:
    """Return the processor time of a call with the most tools, beside the one with the fewest."""
    few, many = (f"{count:,} tools" for count in (min(measured.size.tools), max(measured.size.tools)))
    return ratios(measured.runs.get(many, ()), measured.runs.get(few, ()), "cpu_us")


def _growth_of_payload(measured: Measured) -> Figure | None:
    """Return what a large payload costs beyond a small one, beside parse, validate and serialise alone."""
    small, large = min(measured.size.payload_kb), max(measured.size.payload_kb)
    floors = zip(measured.floors_us[small], measured.floors_us[large], strict=False)
    pairs = zip(_growths(measured, "payload"), floors, strict=False)
    return figure(ours / (above - below) for ours, (below, above) in pairs)


def _growth_beside_floor(measured: Measured) -> Figure | None:
    """Return the same beside a server that does nothing else: its payloads come and go through pipes, too."""
    pairs = zip(_growths(measured, "payload"), _growths(measured, "floor"), strict=False)
    return figure(ours / theirs for ours, theirs in pairs)


def _growths(measured: Measured, kind: str) -> list[float]:
    """Return the processor time of the largest payload beyond the smallest, round by round."""
    small, large = (f"{kind} {pick(measured.size.payload_kb):,} kB" for pick in (min, max))
    pairs = zip(measured.runs.get(small, ()), measured.runs.get(large, ()), strict=False)
    return [most.cpu_us - least.cpu_us for least, most in pairs]


def _counted(field: str) -> _Ratio:
    def measured(all_runs: Measured) -> Figure | None:
        count = None if all_runs.counts is None else getattr(all_runs.counts, field)
        return None if count is None else figure([count])

    return measured


def _more_calls(what: str, ours: str, must: float, aim: float, theirs: str = _SDK) -> Goal:
    unit = "times the SDK's calls" if theirs == _SDK else "times TypeScript's calls"
    # Fewer microseconds of ours are more calls: theirs is divided by ours.
    by_cpu = _against(theirs, ours, "cpu_us")
    return Goal(what, unit, must, aim, True, _against(ours, theirs, "calls_per_second"), by_cpu)


def _more_calls_over_http(what: str, era: str, must: float, aim: float) -> Goal:
    ours, theirs = f"portbook over http{era}", f"sdk over http{era}"
    by_cpu = _against(theirs, ours, "cpu_us")
    calls = _against(ours, theirs, "calls_per_second")
    return Goal(what, "times the SDK's calls", must, aim, True, calls, by_cpu)


def _sooner(what: str, ours: str, must: float, aim: float) -> Goal:
    started, by_cpu = _against(ours, _SDK, "start_ms"), _against(ours, _SDK, "start_cpu_ms")
    return Goal(f"start to first answer, {what}", "times the SDK's start", must, aim, False, started, by_cpu)


def _at_most(what: str, unit: str, must: float | None, aim: float | None, measured: _Ratio) -> Goal:
    return Goal(what, unit, must, aim, False, measured)


def _waits(unit: str, must: float | None, aim: float | None, theirs: str) -> Goal:
    return _at_most("STDIO, one at a time", unit, must, aim, _against("portbook", theirs, "p50_us"))


def _waits_awake(unit: str, must: float, theirs: str) -> Goal:
    what = "STDIO, one at a time, processors awake"
    return _at_most(what, unit, must, None, _against("portbook", theirs, "p50_awake_us"))


def _through(what: str, ours: str, gateways: Collection[str]) -> Goal:
    """Return the goal of a gateway: beside the best of the others."""

    def beside_best(theirs_first: bool, field: str) -> _Ratio:
        def measured(all_runs: Measured) -> Figure | None:
            pairs = [(name, ours) if theirs_first else (ours, name) for name in gateways]
            found = [ratio for pair in pairs if (ratio := _against(*pair, field)(all_runs)) is not None]
            return min(found, key=lambda ratio: ratio.median, default=None)

        return measured

    calls, by_cpu = beside_best(False, "calls_per_second"), beside_best(True, "cpu_us")
    return Goal(what, "times the best gateway's calls", 10, 30, True, calls, by_cpu)


GOALS: Final[tuple[Goal, ...]] = (
    _more_calls("STDIO, pipelined", "portbook", 30, 100),
    _more_calls("STDIO, pipelined", "portbook", 1, 3, _TYPESCRIPT),
    _more_calls("an inline tool", "inline", 30, 100),
    _more_calls("with a key", "with a key", 10, 30),
    _more_calls("a policy with `where`", "policy with where", 10, 30),
    _more_calls("recorded arguments", "recorded arguments", 10, 30),
    _more_calls('`effect="write"`, the intent recorded first', "effect write", 10, 30),
    _more_calls("a plain function in a thread", "in a thread", 10, 30),
    _more_calls("an envelope with provenance", "envelope with provenance", 10, 30),
    _more_calls("the envelope dialect", "envelope dialect", 10, 30),
    _more_calls("the bare dialect", "bare dialect", 10, 30),
    _waits("times the SDK's p50", 1 / 6, None, _SDK),
    _waits("times the bare loop's p50", None, 1.25, _BARE),
    _waits_awake("times the SDK's p50", 1 / 6, _SDK),
    _sooner("a pydantic toolset", "portbook", 1 / 3, 1 / 5),
    _sooner("without pydantic", "without pydantic", 1 / 6, 1 / 10),
    _more_calls_over_http("`/mcp` with a handshake", "", 10, 40),
    _more_calls_over_http("`/mcp`, 2026-07-28", ", 2026-07-28", 6, 12),
    _through("a fast server behind, STDIO", "through portbook", OVER_STDIO),
    _through("a fast server behind, `/mcp`", "through portbook over http", OVER_HTTP),
    _at_most("`/rpc`", "times the CPU of `/mcp`", 1.2, None, _against(_RPC, _MCP, "cpu_us")),
    _at_most("`/execute`", "times the CPU of `/mcp`", 1.2, None, _against(_EXECUTE, _MCP, "cpu_us")),
    _at_most("`/mcp`, one at a time", "times the SDK's p50", 0.25, None, _against(_MCP, _SDK_MCP, "p50_us")),
    _at_most(
        "`/mcp`, one at a time", "times bare httptools' p50", None, 1.25, _against(_MCP, _BARE_HTTP, "p50_us")
    ),
    _at_most(
        "`/mcp`, 2,000 silent and 2,000 slow connections",
        "times the quiet p99",
        3,
        None,
        _against(_CROWDED, _MCP, "p99_us"),
    ),
    _at_most(
        "a tool of an HTTP API",
        "times the CPU of our HTTP client alone",
        2,
        None,
        _against(_API, _CLIENT, "cpu_us"),
    ),
    _at_most("memory, idle", "times the SDK's", 0.65, 0.45, _against("portbook", _SDK, "idle_mib")),
    _at_most(
        "memory, idle, without pydantic",
        "times the SDK's",
        0.65,
        0.45,
        _against("without pydantic", _SDK, "idle_mib"),
    ),
    _at_most("most tools beside fewest", "times the CPU of a call", 1.1, None, _growth_of_tools),
    _at_most("largest payload", "times parse, validate, serialise alone", 1.5, None, _growth_of_payload),
    _at_most("largest payload", "times the same over the same pipes", 1.5, None, _growth_beside_floor),
    _at_most("a plain call over STDIO", "instructions executed", 120_000, 55_000, _counted("executed")),
    _at_most(
        "a plain call over STDIO", "instructions under callgrind", 120_000, 55_000, _counted("instructions")
    ),
    _at_most("a call alone in its read", "calls of our functions", 60, None, _counted("functions")),
    _at_most("a call among 32", "calls of our functions", 60, None, _counted("functions_pipelined")),
    _at_most("a call", "files of ours", 15, None, _counted("files")),
)
