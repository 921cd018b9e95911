"""How many workers serve: what the settings ask for, where they can serve together."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

from portbook.settings import BadSettings, Settings
from portbook.stores.connection_clock_and_errors import MEMORY

__all__ = ["usable_processors", "usable_worker_count"]

# Where Linux says how much processor time a container may use, of each period: `200000 100000` is two.
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def usable_worker_count(settings: Settings, *, with_stdio: bool = False, is_reloading: bool = False) -> int:
    """Return how many workers the settings ask for.

    Raises `BadSettings` where several cannot serve together.
    """
    wanted = settings.worker_processes
    count = usable_processors() if wanted == "auto" else wanted
    if count > 1:
        if is_reloading:
            raise _refused(settings, "cannot be watched by --reload; set it to 1, or reload with SIGHUP")
        if with_stdio:
            raise _refused(settings, "is for HTTP alone; leave out --stdio, or set it to 1")
        if settings.legacy_sse:
            raise _refused(settings, "must be 1 with server.legacy_sse, whose clients stay with one process")
        if settings.store_url is None and settings.store_path.name == MEMORY:
            raise _refused(settings, "must be 1 with a store in memory, which belongs to one process")
    return count


def _refused(settings: Settings, sentence: str) -> BadSettings:
    return settings.complain(("server", "workers"), sentence)


def usable_processors(quota: Path = _QUOTA) -> int:
    """Return how many processors this process may use: those of its machine, or those of its container."""
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS
    processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    try:
        share, period = quota.read_text("ascii").split()
        return max(1, min(processors, math.ceil(int(share) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):  # no such file, or `max`: no limit
        return processors
