"""One program as a child process: fed through a pipe, its answers checked, its time and memory taken.

The first message is sent alone and its answer awaited, so that the start is measured apart from the calls.
All others are then written as fast as the pipe takes them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Final

__all__ = ["Run", "WrongAnswer", "cpu_seconds", "measure"]

_CHUNK: Final = 1 << 20


class WrongAnswer(RuntimeError):
    """A program did not answer as it has to: its speed means nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of one program took."""

    calls_per_second: float
    cpu_us: float | None
    """Processor time of one call, user and system together; None where the system does not tell."""
    start_ms: float
    """From the start of the process to its first answer."""
    peak_kib: int | None


def measure(command: Sequence[str], root: Path, sent: Sequence[bytes], expected: Sequence[bytes]) -> Run:
    """Run `command` in `root`, send it all messages and return what that took.

    Raises `WrongAnswer` unless every byte that comes back is the one expected.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")}
    first, rest = sent[0], b"".join(sent[1:])
    started = time.perf_counter()
    child = subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert child.stdin is not None
    assert child.stdout is not None
    incoming, outgoing = child.stdout.fileno(), child.stdin.fileno()
    try:
        os.write(outgoing, first)
        answered = _read(incoming, len(expected[0]))
        start_s = time.perf_counter() - started

        before, cpu_before = time.perf_counter(), cpu_seconds(child.pid)
        feeder = Thread(target=_write, args=(outgoing, rest), daemon=True)
        feeder.start()
        answered += _read(incoming, sum(map(len, expected[1:])))
        elapsed, cpu_after = time.perf_counter() - before, cpu_seconds(child.pid)
        peak_kib = _peak_kib(child.pid)  # while it still runs: afterwards only a mix of all children is left

        feeder.join()
        child.stdin.close()
        answered += _read(incoming, 1)  # one more than there has to be
        if child.wait() != 0 or answered != b"".join(expected):
            raise WrongAnswer(f"{' '.join(command)} did not answer as expected")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        child.stdin.close()
    calls = len(sent) - 1
    cpu_us = None if cpu_before is None or cpu_after is None else (cpu_after - cpu_before) / calls * 1e6
    return Run(calls / elapsed, cpu_us, start_s * 1e3, peak_kib)


def _read(descriptor: int, size: int) -> bytes:
    """Return the next `size` bytes, or fewer where the stream ends before."""
    parts: list[bytes] = []
    while size > 0 and (part := os.read(descriptor, min(size, _CHUNK))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view[:_CHUNK]) :]
    except BrokenPipeError:
        return  # the program ended early: the answers will tell


def cpu_seconds(pid: int) -> float | None:
    """Return the processor time that a process has taken so far; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    # The clock of another process, as clock_getcpuclockid(3) would name it: to the nanosecond and at any
    # moment, where getrusage(2) knows only children that have ended.
    return time.clock_gettime((~pid << 3) | 2)


def _peak_kib(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
