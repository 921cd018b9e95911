"""`portbook serve --http` with several workers: what the process does that the operator started."""

from __future__ import annotations

import sys

from portbook.cli.http_door import HttpDoor
from portbook.cli.output_and_errors import say
from portbook.cli.worker_supervisor import WorkerSupervisor
from portbook.settings import Settings

__all__ = ["serve_with_workers"]


def serve_with_workers(settings: Settings, count: int) -> int:
    """Serve HTTP with `count` workers until a signal; return the exit code.

    Raises `BadSettings` for settings that cannot be used, `OSError` where it cannot listen.
    """
    door = HttpDoor(settings)
    try:
        return WorkerSupervisor(
            door.descriptor,
            _command_of_this_process(),
            count,
            on_ready=lambda served: say(door.invitation(f"{served} with {count} workers")),
            on_stop=door.close_listener,
        ).run()
    finally:
        door.close()


def _command_of_this_process() -> list[str]:
    """Return the command that started this process, word for word: a worker is to be like it."""
    return [sys.executable, *sys.orig_argv[1:]]
