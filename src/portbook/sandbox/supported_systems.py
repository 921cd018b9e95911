"""Which systems can confine a server: their kernel and their processor."""

from __future__ import annotations

import platform
import sys
from typing import Final

from portbook.sandbox import confine
from portbook.sandbox.system_call_filter import FILTERED_MACHINES

__all__ = ["problem_of_system"]

# The version of Landlock that can limit connections.
_PORTS_SINCE: Final = 4


def problem_of_system(*, limits_ports: bool = True) -> str | None:
    """Return why servers cannot be confined on this machine; None where they can."""
    if sys.platform != "linux":
        return "only Linux can confine it"
    version = confine.abi()
    if version == 0:
        return "this kernel has no Landlock (Linux 5.13 or newer, and not switched off)"
    if platform.machine() not in FILTERED_MACHINES:
        return "its processor is of a kind whose system calls are not known here"
    if limits_ports and version < _PORTS_SINCE:
        return (
            f"this kernel has version {version} of Landlock, which cannot limit connections (Linux 6.7 can);"
            ' sandbox.connect = "any" does without'
        )
    return None
