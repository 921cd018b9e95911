"""The load over STDIO: raw pipes, nothing of any SDK.

One process serves one run: it is started, greeted, called once, left alone for a moment, warmed up, then
called as fast as its pipe takes frames, and at last one call at a time: with processors that sleep while
nothing happens, and with those that are kept awake.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.awake import awake
from bench.child import Child
from bench.figures import Run
from bench.wire import Dialect, check, frames, greeting, initialized

__all__ = ["StdioCalls", "batched", "measure_stdio"]

_WARM_UP: Final = 200
_IDLE_S: Final = 0.05

# Calls that wait for their answer at any time: servers refuse more, and no client waits for so many.
_WINDOW: Final = 512
_BATCH: Final = 64
_BATCH_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class StdioCalls:
    """What is called over STDIO, and how often."""

    pipelined: int
    one_at_a_time: int = 0
    tool: str = "echo"
    dialect: Dialect = "mcp"
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    items: Sequence[str] | None = None

    def lines(self, numbers: Sequence[int]) -> list[bytes]:
        """Return the calls with these numbers, each a line."""
        made = frames(self.dialect, self.tool, numbers, meta=self.meta, items=self.items)
        return [frame + b"\n" for frame in made]


def measure_stdio(command: Sequence[str], folder: Path, extra: dict[str, str], calls: StdioCalls) -> Run:
    """Run a server in `folder`, call it, and return what that took.

    Raises `WrongAnswer` where an answer is not the echo of its call.
    """
    warm = min(_WARM_UP, calls.pipelined)
    with Child(command, folder, extra) as child:
        if calls.dialect == "mcp":
            child.write(greeting() + b"\n")
            child.read_lines(1)
            start_s, start_cpu_s = time.perf_counter() - child.started, child.cpu_seconds()
            child.write(initialized() + b"\n")
            _exchange(child, calls, [1])
        else:
            _exchange(child, calls, [1])
            start_s, start_cpu_s = time.perf_counter() - child.started, child.cpu_seconds()
        time.sleep(_IDLE_S)
        idle_mib = child.resident_mib()
        _exchange(child, calls, range(2, 2 + warm))
        elapsed, cpu_s = _exchange(child, calls, range(2 + warm, 2 + warm + calls.pipelined))
        first = 2 + warm + calls.pipelined
        waits = [_exchange(child, calls, [first + at])[0] for at in range(calls.one_at_a_time)]
        first += calls.one_at_a_time
        with awake() if waits else nullcontext():
            awaited = [_exchange(child, calls, [first + at])[0] for at in range(calls.one_at_a_time)]
    return Run(
        calls_per_second=calls.pipelined / elapsed,
        cpu_us=cpu_s / calls.pipelined * 1e6,
        p50_us=statistics.median(waits) * 1e6 if waits else None,
        p50_awake_us=statistics.median(awaited) * 1e6 if awaited else None,
        start_ms=start_s * 1e3,
        start_cpu_ms=start_cpu_s * 1e3,
        idle_mib=idle_mib,
    )


def _exchange(child: Child, calls: StdioCalls, numbers: Sequence[int]) -> tuple[float, float]:
    """Send calls as fast as possible; return the seconds and the processor time until the last answer."""
    batches = batched(calls.lines(numbers))
    cpu_before, before = child.cpu_seconds(), time.perf_counter()
    if len(numbers) == 1:  # without a thread, which would be part of the wait
        child.write(batches[0][1])
        answers = child.read_lines(1)
    else:
        answers = child.exchange(batches, _WINDOW)
    elapsed, cpu_s = time.perf_counter() - before, child.cpu_seconds() - cpu_before
    check(answers, numbers)  # not timed
    return elapsed, cpu_s


def batched(lines: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """Return the lines in batches, each with its count: as many as one write of a busy client would hold."""
    made: list[tuple[int, bytes]] = []
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        if waiting and (len(waiting) == _BATCH or size + len(line) > _BATCH_BYTES):
            made.append((len(waiting), b"".join(waiting)))
            waiting, size = [], 0
        waiting.append(line)
        size += len(line)
    return [*made, (len(waiting), b"".join(waiting))] if waiting else made
