"""The results as tables and plots: `docs/reference/benchmarks.md`, or text for the terminal."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.figures import Figure, figure
from bench.goals import Reached, judged
from bench.peers import PEERS
from bench.plots import Bar, bar_chart
from bench.rounds import Measured

__all__ = ["MARK", "plots", "tables", "write_page"]

# What the bench writes stands below this line of the page; what is above is written by people.
MARK: Final = "<!-- written by scripts/bench -->"

_COLUMNS: Final[tuple[tuple[str, str, Callable[[float], str]], ...]] = (
    ("calls_per_second", "calls per second", lambda value: f"{value:,.0f}"),
    ("cpu_us", "CPU per call, µs", lambda value: f"{value:,.1f}"),
    ("p50_us", "one at a time, p50, µs", lambda value: f"{value:,.0f}"),
    ("p50_awake_us", "the same, processors awake, µs", lambda value: f"{value:,.0f}"),
    ("start_ms", "first answer, ms", lambda value: f"{value:,.0f}"),
    ("start_cpu_ms", "CPU of the start, ms", lambda value: f"{value:,.0f}"),
    ("idle_mib", "idle, MiB", lambda value: f"{value:,.1f}"),
)


def tables(measured: Measured) -> str:
    """Return all tables as Markdown, and how far they can be trusted."""
    return "\n".join(
        [*_about(measured), "", *_goals(measured), "", *_servers(measured), *_left_out(measured)]
    )


def write_page(measured: Measured, folder: Path) -> None:
    """Write the lower part of `benchmarks.md` in `folder`, and the plots beside it."""
    page = folder / "benchmarks.md"
    above, mark, _ = page.read_text().partition(MARK)
    images = plots(measured)
    shown = [f"![{name}]({file})" for file, (name, _) in images.items()]
    page.write_text("\n".join([above.rstrip("\n"), "", mark or MARK, "", *shown, "", tables(measured), ""]))
    for file, (_, image) in images.items():
        (folder / file).write_text(image)


def plots(measured: Measured) -> dict[str, tuple[str, str]]:
    """Return the plots: a file's name, the title, and the SVG."""
    compared = [*PEERS, "portbook"]
    charts = {
        "benchmarks-throughput.svg": ("Calls per second over STDIO, pipelined", "calls_per_second", ",.0f"),
        "benchmarks-start.svg": ("From start to first answer, ms", "start_ms", ",.0f"),
        "benchmarks-memory.svg": ("Idle memory, MiB", "idle_mib", ".0f"),
    }
    made: dict[str, tuple[str, str]] = {}
    for file, (title, field, form) in charts.items():
        names = [*compared, "without pydantic"] if field != "calls_per_second" else compared
        bars = [
            Bar(name, value.median, value.low, value.high, name not in PEERS, f"{value.median:{form}}")
            for name in names
            if (value := _figure(measured, name, field)) is not None
        ]
        made[file] = (title, bar_chart(title, bars))
    return made


def _figure(measured: Measured, name: str, field: str) -> Figure | None:
    return figure(getattr(run, field) for run in measured.runs.get(name, ()))


def _about(measured: Measured) -> list[str]:
    system = f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.system()}"
    load = f"load of the machine over the last minute {os.getloadavg()[0]:.1f}"
    rounds = "1 round" if measured.size.rounds == 1 else f"{measured.size.rounds} rounds in turns"
    return [f"{system}; {rounds}; {load}. Median, and in brackets the lowest and the highest."]


def _goals(measured: Measured) -> list[str]:
    rows = [
        [
            reached.goal.what,
            _bound(reached, reached.goal.must),
            _bound(reached, reached.goal.aim),
            reached.goal.unit,
            *(_ratio(each) for each in (reached.ratio, reached.by_cpu)),
            reached.verdict,
        ]
        for reached in judged(measured)
    ]
    return _table(["goal", "must", "aim", "", "reached", "by CPU", "verdict"], rows)


def _ratio(value: Figure | None) -> str:
    return "" if value is None else _range(value, _shown)


def _shown(value: float) -> str:
    return f"{value:,.2f}" if value < 1_000 else f"{value:,.0f}"


def _bound(reached: Reached, bound: float | None) -> str:
    if bound is None:
        return ""
    shown = f"{bound:.3g}" if bound < 1_000 else f"{bound:,.0f}"
    return f"{'≥' if reached.goal.more_is_better else '≤'} {shown}"


def _servers(measured: Measured) -> list[str]:
    rows: list[list[str]] = []
    for name in measured.runs:
        figures = [(_figure(measured, name, field), form) for field, _, form in _COLUMNS]
        rows.append([name, *("" if value is None else _range(value, form) for value, form in figures)])
    return _table(["", *(heading for _, heading, _ in _COLUMNS)], rows)


def _range(value: Figure, form: Callable[[float], str]) -> str:
    if value.low == value.high:
        return form(value.median)
    return f"{form(value.median)} ({form(value.low)} to {form(value.high)})"


def _left_out(measured: Measured) -> list[str]:
    return [f"\nLeft out: {name}, because {why}." for name, why in measured.left_out.items()]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
