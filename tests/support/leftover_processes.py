"""Finds the processes that tests started and did not end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from support import forked_process

PROC = Path("/proc")
GRACE_S = 3.0
"""What was told to end may take a moment."""

MARK = "TESTS_STARTED_BY"
"""A variable that children inherit: whoever's parent ended has another parent, but still this variable."""

# Part of Python itself: one for each process that uses multiprocessing, and ends with it.
_OF_PYTHON = b"multiprocessing.resource_tracker"


@dataclass(frozen=True, slots=True)
class Process:
    number: int
    parent: int
    command: str


class _Stat(NamedTuple):
    state: str
    parent: int
    began: int
    """In ticks of the clock since the machine began."""


def mark() -> None:
    """Let all that this process starts from here on be known as its own."""
    os.environ[MARK] = str(os.getpid())


def left() -> list[Process]:
    """The processes of this one that still live, after a moment of grace; none where there is no /proc."""
    deadline = time.monotonic() + GRACE_S
    while (found := _ours()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def end(processes: list[Process]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.number, signal.SIGKILL)


def require_none(of: str) -> None:
    """Fail, and end them, if processes of some tests still live."""
    if found := left():
        end(found)
        import pytest  # not above: clients in processes of their own want only what is beside this

        commands = "\n".join(f"{process.number}: {process.command}" for process in found)
        pytest.fail(f"{of} left processes behind:\n{commands}", pytrace=False)


def _ours() -> list[Process]:
    everything = {process.number: process for process in _processes()}
    ours = {os.getpid()}
    while more := {one.number for one in everything.values() if one.parent in ours} - ours:
        ours |= more
    ours |= {number for number in everything if _is_marked(number)}
    ours -= {os.getpid(), forked_process.server_number()}
    return [everything[number] for number in sorted(ours) if number in everything]


def _processes() -> Iterator[Process]:
    """The processes that began no earlier than this one: none of the others can be of it."""
    own = _stat(os.getpid())  # macOS has no /proc; what Linux finds is enough, for the tests are the same
    if own is None:
        return
    for number in [int(name) for name in os.listdir(PROC) if name.isdigit()]:  # noqa: PTH208
        stat = _stat(number)
        if stat is None or stat.state in "ZX" or stat.began < own.began:
            continue
        with contextlib.suppress(OSError):
            command = (PROC / str(number) / "cmdline").read_bytes()
            if _OF_PYTHON not in command:
                shown = command.replace(b"\0", b" ").decode(errors="replace").strip()
                yield Process(number, stat.parent, shown)


def _stat(number: int) -> _Stat | None:
    try:
        # Not with pathlib: this is read for every process of the machine after every file of tests.
        with open(f"{PROC}/{number}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:  # it ended meanwhile, or is none of our business
        return None
    return _Stat(fields[0].decode(), int(fields[1]), int(fields[19]))


def _is_marked(number: int) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARK}={os.getpid()}".encode() in (PROC / str(number) / "environ").read_bytes().split(b"\0")
    return False
