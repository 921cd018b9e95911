"""Counts the instructions of a server under valgrind's callgrind, between marks that its tools make.

A mark is a call of `getppid` in the C library: callgrind writes what it has counted and begins anew. So one
start serves all scenarios, and only calls are counted.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.child import Child

__all__ = ["Missing", "begin", "between_marks", "callgrind", "counts_between_marks"]

_TOOL: Final = ("--tool=callgrind", "--dump-before=getppid", "--callgrind-out-file=counted")


class Missing(RuntimeError):
    """Valgrind is not there and cannot be installed; the message says what to do."""


def callgrind(command: Sequence[str], *, is_counting: bool = True) -> list[str]:
    """Return the command that runs `command` under callgrind, which counts at once or once it is told to.

    Raises `Missing` where there is no valgrind and none can be installed.
    """
    valgrind = _valgrind()
    at_once = "yes" if is_counting or not _can_be_told(valgrind) else "no"
    return [valgrind, *_TOOL, f"--instr-atstart={at_once}", *command]


def begin(pid: int) -> None:
    """Let callgrind count from now on: what comes before takes a fraction of the time if nobody counts it."""
    if _can_be_told(_valgrind()):
        _tell(pid, "instrumentation", "on").check_returncode()


@functools.cache
def _can_be_told(valgrind: str) -> bool:
    """Whether a program under valgrind can be told anything while it waits: a container may forbid that."""
    if shutil.which("vgdb") is None:
        return False
    waiting = subprocess.Popen([valgrind, "--tool=none", "--quiet", "sleep", "60"])
    try:
        return _tell(waiting.pid, "help").returncode == 0
    finally:
        waiting.terminate()
        waiting.wait()


def _tell(pid: int, *command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["vgdb", "--wait=30", f"--pid={pid}", *command], check=False, capture_output=True)


def counts_between_marks(
    command: Sequence[str], folder: Path, chunks: Sequence[bytes], *, is_marked: bool = True
) -> list[int]:
    """Send chunks of lines, each after the answers to the one before; return the counts between marks.

    What comes before the first mark and after the last one is not counted. A server that marks
    nothing (not `is_marked`) has one count, of its whole life.

    Raises `Missing` without valgrind, `WrongAnswer` where the server ends early.
    """
    with Child(callgrind(command), folder, {"PYTHONHASHSEED": "0"}) as child:
        for chunk in chunks:
            child.write(chunk)
            child.read_lines(sum(b'"id":' in line for line in chunk.splitlines()))
    return between_marks(folder) if is_marked else [_total(folder / "counted")]


def between_marks(folder: Path) -> list[int]:
    """Return what was counted between the marks of a server that ran in `folder`."""
    dumps = sorted(folder.glob("counted.*"), key=lambda path: int(path.suffix[1:]))
    return [_total(dump) for dump in dumps[1:]]


def _total(dump: Path) -> int:
    found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def _valgrind() -> str:
    found = shutil.which("valgrind")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(
            ["apt-get", "install", "--yes", "--quiet", "valgrind"], check=False, capture_output=True
        )
        found = shutil.which("valgrind")
    if found is None:
        raise Missing("instructions are not counted: install valgrind (Debian: apt install valgrind)")
    return found
