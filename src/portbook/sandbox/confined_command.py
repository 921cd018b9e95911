"""`confined_command`: the command that starts a server confined, and which systems can confine one."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from portbook.sandbox import landlock_and_limits
from portbook.sandbox.always_readable_files import ALWAYS_WRITABLE, always_readable
from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.sandbox.seccomp_filter import FILTERED_MACHINES, kernel_filter

__all__ = ["NotConfinable", "confined_command", "problem_of_system"]


class NotConfinable(Exception):
    """A server cannot be confined as asked; the message says why."""


def confined_command(
    command: Sequence[str], sandbox: DeclaredSandbox, environ: Mapping[str, str], folder: Path
) -> tuple[str, ...]:
    """Return the command that confines itself and then becomes `command`, started in `folder`.

    Raises `NotConfinable` where that cannot be had.
    """
    if problem := problem_of_system(limits_ports=sandbox.connect is not None):
        raise NotConfinable(problem)
    rules = {
        "read": [*always_readable(command, environ, folder), *_existing("read", sandbox.read)],
        "write": [*ALWAYS_WRITABLE, *_existing("write", sandbox.write)],
        "connect": sandbox.connect,
        "memory_bytes": None if sandbox.memory_mb is None else sandbox.memory_mb * 1024 * 1024,
        "processes": sandbox.processes,
        "filter": kernel_filter(
            platform.machine(),
            any_port=sandbox.connect is None,
            unix=any(path.is_socket() for path in sandbox.write),
        ).hex(),
    }
    return (sys.executable, "-I", "-S", landlock_and_limits.__file__, json.dumps(rules), *command)


def _existing(key: str, paths: Iterable[Path]) -> list[str]:
    for path in paths:
        if not path.exists():
            raise NotConfinable(f"sandbox.{key} names {path}, which does not exist")
    return [str(path) for path in paths]


# Which systems can confine a server: their kernel and their processor.


# The version of Landlock that can limit connections.
_PORTS_SINCE: Final = 4


def problem_of_system(*, limits_ports: bool = True) -> str | None:
    """Return why servers cannot be confined on this machine; None where they can."""
    if sys.platform != "linux":
        return "only Linux can confine it"
    version = landlock_and_limits.abi()
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
