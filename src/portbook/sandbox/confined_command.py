"""`confined_command`: the command that starts a server confined."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from portbook.sandbox import confine
from portbook.sandbox.always_readable import ALWAYS_WRITABLE, always_readable
from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.sandbox.supported_systems import problem_of_system
from portbook.sandbox.system_call_filter import kernel_filter

__all__ = ["NotConfinable", "confined_command"]


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
    return (sys.executable, "-I", "-S", confine.__file__, json.dumps(rules), *command)


def _existing(key: str, paths: Iterable[Path]) -> list[str]:
    for path in paths:
        if not path.exists():
            raise NotConfinable(f"sandbox.{key} names {path}, which does not exist")
    return [str(path) for path in paths]
