"""`python -m bench`: Portbook over STDIO against the same loop without any checks."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.children import Run, WrongAnswer, measure
from bench.messages import answers, messages
from bench.stages import Stage, measure_stages

__all__ = ["main"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_PORTBOOK: Final = "portbook"
_BARE: Final = "bare loop"

# Column, how to read it from a run, whether more is better.
_COLUMNS: Final[tuple[tuple[str, Callable[[Run], float | None], bool], ...]] = (
    ("calls_per_second", lambda run: run.calls_per_second, True),
    ("cpu_us", lambda run: run.cpu_us, False),
    ("start_ms", lambda run: run.start_ms, False),
    ("peak_mib", lambda run: None if run.peak_kib is None else run.peak_kib / 1024, False),
)
_HEADINGS: Final = {
    "calls_per_second": ("calls per second", ",.0f"),
    "cpu_us": ("CPU per call, µs", ".2f"),
    "start_ms": ("start to first answer, ms", ".0f"),
    "peak_mib": ("peak memory, MiB", ".1f"),
}


def main() -> int:
    """Measure, print and return the exit status."""
    options = _options()
    count = 10_000 if options.quick else options.messages
    rounds = 3 if options.quick else options.rounds
    try:
        runs = _compare(count, rounds)
    except WrongAnswer as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    _progress("stages")
    stages = measure_stages(_ROOT, messages(count)[-1], loops=3_000 if options.quick else 20_000)
    _progress("")
    if options.json:
        print(json.dumps(_as_data(count, runs, stages), indent=2))
    else:
        _print_table(count, runs, stages)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="messages a run (default: 100000)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program (default: 5)")
    parser.add_argument("--quick", action="store_true", help="10000 messages, 3 rounds: a rough idea")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    if options.messages < 2 or options.rounds < 1:
        parser.error("at least 2 messages and 1 round")
    return options


def _compare(count: int, rounds: int) -> dict[str, list[Run]]:
    """Run both programs in turns, so that what disturbs the machine disturbs both."""
    sent, expected = messages(count), answers(count)
    runs: dict[str, list[Run]] = {_PORTBOOK: [], _BARE: []}
    with TemporaryDirectory(prefix="portbook-bench-") as log_dir:
        serve = ["-m", "portbook", "serve", "--stdio", "bench/echo_tools.py"]
        commands = {
            _PORTBOOK: [*serve, "--config", "bench/portbook.toml", "--log-dir", log_dir],
            _BARE: ["bench/bare_loop.py"],
        }
        for number in range(1, rounds + 1):
            for name, command in commands.items():
                _progress(f"round {number} of {rounds}: {name}")
                runs[name].append(measure([sys.executable, *command], _ROOT, sent, expected))
    return runs


def _as_data(count: int, runs: dict[str, list[Run]], stages: list[Stage]) -> dict[str, Any]:
    return {
        "messages": count,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
        "programs": {
            name: {
                "summary": {column: _summary(own, column) for column, _, _ in _COLUMNS},
                "runs": [dataclasses.asdict(run) for run in own],
            }
            for name, own in runs.items()
        },
        "ratio": {column: _ratio(runs, column) for column, _, _ in _COLUMNS},
        "stages": [
            {"name": stage.name, "us": stage.us, "percent": percent}
            for stage, percent in zip(stages, _shares(stages), strict=True)
        ],
    }


def _values(runs: list[Run], column: str) -> list[float]:
    read = next(read for name, read, _ in _COLUMNS if name == column)
    return [value for value in map(read, runs) if value is not None]


def _summary(runs: list[Run], column: str) -> dict[str, float] | None:
    values = _values(runs, column)
    if not values:
        return None
    more_is_better = next(better for name, _, better in _COLUMNS if name == column)
    return {
        "best": max(values) if more_is_better else min(values),
        "median": statistics.median(values),
        "spread": max(values) / min(values) - 1,
    }


def _ratio(runs: dict[str, list[Run]], column: str) -> dict[str, float] | None:
    """Return how many times the bare loop's number Portbook's is."""
    ours, bare = _summary(runs[_PORTBOOK], column), _summary(runs[_BARE], column)
    if ours is None or bare is None:
        return None
    return {kind: ours[kind] / bare[kind] for kind in ("best", "median")}


def _shares(stages: list[Stage]) -> list[float]:
    total = sum(stage.us for stage in stages)
    return [stage.us / total * 100 for stage in stages]


def _print_table(count: int, runs: dict[str, list[Run]], stages: list[Stage]) -> None:
    rounds = len(runs[_PORTBOOK])
    print(f"Echo over STDIO, pipelined: {count:,} messages a run, {rounds} runs each in turns.")
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors.")
    print()
    print(f"{'best (median)':28}{_PORTBOOK:>22}{_BARE:>22}{'ratio':>16}")
    for column, (heading, form) in _HEADINGS.items():
        cells = [_cell(_summary(own, column), form) for own in runs.values()]
        print(f"{heading:28}{cells[0]:>22}{cells[1]:>22}{_cell(_ratio(runs, column), '.2f'):>16}")
    print()
    print(f"{'inside one call':28}{'µs':>10}{'share':>10}")
    for stage, percent in zip(stages, _shares(stages), strict=True):
        print(f"{stage.name:28}{stage.us:>10.2f}{percent:>8.0f} %")
    print(f"{'together':28}{sum(stage.us for stage in stages):>10.2f}")
    print()
    print(_noise(runs))


def _cell(summary: dict[str, float] | None, form: str) -> str:
    return "not measured" if summary is None else f"{summary['best']:{form}} ({summary['median']:{form}})"


def _noise(runs: dict[str, list[Run]]) -> str:
    """Say how far the numbers can be trusted."""
    spreads = [
        f"{name} {_HEADINGS[column][0]} {summary['spread']:.0%}"
        for name, own in runs.items()
        for column in ("calls_per_second", "cpu_us")
        if (summary := _summary(own, column)) is not None
    ]
    return (
        f"Noise, from the worst run to the best: {'; '.join(spreads)}.\n"
        f"Load of the machine over the last minute: {os.getloadavg()[0]:.1f}. "
        "CPU per call suffers least from others' work; compare ratios, not runs on different days."
    )


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
