"""Which processes run, for the tests that end some."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from support.leftover_processes import PROC

PATIENCE_S = 20.0


def running(mark: str) -> list[int]:
    """The processes whose command has this mark."""
    found: list[int] = []
    for path in PROC.iterdir():
        if path.name.isdigit() and path.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                if mark.encode() in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
    return found


def is_running(process: str) -> bool:
    return (PROC / process).exists()


def wait_until(is_so: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)
