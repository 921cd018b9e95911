"""Keeps the processors awake while waits are measured.

A processor with nothing to do sleeps, and takes longer to wake up than most servers to answer: on virtual
machines some fifty microseconds, twice for each call. What a server takes itself is what a client waits for
where something else keeps the processors awake.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

__all__ = ["awake"]

# Whatever else is ready runs before it, at once. It ends with the process that started it.
_SPINNER: Final = """
import os
if hasattr(os, "SCHED_IDLE"):
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
else:
    os.nice(19)
print("awake", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


@contextmanager
def awake() -> Generator[None]:
    """Let no processor sleep: each has a process that only counts, and gives way to every other one."""
    command = [sys.executable, "-I", "-S", "-c", _SPINNER]
    spinning = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(os.cpu_count() or 1)]
    try:
        for each in spinning:
            assert each.stdout is not None
            each.stdout.readline()
        yield
    finally:
        for each in spinning:
            with suppress(ProcessLookupError):
                each.kill()
            each.communicate()
