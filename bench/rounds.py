"""Runs the scenarios in rounds, each once a round, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.counts import Counts
from bench.figures import Run
from bench.http_load import HttpCalls, free_port, measure_http
from bench.payload_floor import payload_floor_us
from bench.peers import Unavailable
from bench.scenarios import Scenario, Size, payload
from bench.stdio_load import measure_stdio

__all__ = ["Measured", "measure"]


@dataclass(frozen=True, slots=True)
class Measured:
    """All runs by the name of their scenario, and what was left out."""

    size: Size
    runs: dict[str, list[Run]]
    floors_us: dict[int, list[float]]
    """What a payload of so many kB costs at least, once a round."""
    left_out: dict[str, str]
    """Scenarios whose server cannot be installed here, and why."""
    counts: Counts | None = None
    """What one call costs in counts; None where only some rows were measured."""


def measure(size: Size, rows: Sequence[Scenario], tell: Callable[[str], None]) -> Measured:
    """Run all rows in rounds; `tell` hears what is next.

    Raises `WrongAnswer` where a server does not answer as it has to.
    """
    runs: dict[str, list[Run]] = {row.name: [] for row in rows}
    floors: dict[int, list[float]] = {kb: [] for kb in size.payload_kb}
    left_out: dict[str, str] = {}
    for number in range(1, size.rounds + 1):
        for row in rows:
            tell(f"round {number} of {size.rounds}: {row.name}")
            try:
                runs[row.name].append(_run(row))
            except Unavailable as unavailable:
                left_out[row.name] = str(unavailable)
        for kb, taken in floors.items():
            taken.append(payload_floor_us(payload(kb)))
    tell("")
    return Measured(size, {name: own for name, own in runs.items() if own}, floors, left_out)


def _run(row: Scenario) -> Run:
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        folder = Path(name)
        settings = row.settings if isinstance(row.settings, str) else row.settings()
        (folder / "portbook.toml").write_text(settings)
        extra = {"PORTBOOK_STORE": str(folder / "portbook.db"), **row.extra}
        if isinstance(row.calls, HttpCalls):
            port = free_port()
            return measure_http(row.command(port), folder, extra, port, row.calls)
        return measure_stdio(row.command(0), folder, extra, row.calls)
