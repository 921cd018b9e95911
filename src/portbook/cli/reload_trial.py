"""A trial of changed files: another process loads them first, and an import that hangs holds up no client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from typing import Final

from portbook.cli.exit_codes import ExitCode
from portbook.cli.output_and_errors import say

__all__ = ["TRIAL", "SlowReload", "ending_of", "is_trial", "load_failure", "try_to_load"]

# Set for the process of a trial alone: it loads what it would serve, and ends.
TRIAL: Final = "_PORTBOOK_TRIAL"


def is_trial() -> bool:
    """Return whether this process only loads what it would serve; what it starts itself does not see it."""
    return os.environ.pop(TRIAL, None) is not None


async def try_to_load(command: Sequence[str]) -> str | None:
    """Run `command` as a trial; return what it says where it fails, and None where it succeeds.

    Whoever cancels this ends the process.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        # A Ctrl-C of the terminal is for the process that serves, which then ends this one.
        process_group=0,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", TRIAL: "1"},
    )
    try:
        _, said = await process.communicate()
    except asyncio.CancelledError:
        await _end(process)
        raise
    code = await process.wait()
    if code == 0:
        return None
    failure = load_failure(code)
    return said.decode(errors="replace") + ("" if failure is None else f"portbook: {failure}\n")


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()  # it has no calls: there is nothing to finish
    await process.wait()


# How a process ended that was to load changed files, where it cannot have said so itself.


def load_failure(code: int) -> str | None:
    """Return what an exit code of `subprocess` tells; None where the process has said why it failed."""
    if code == int(ExitCode.INVALID):
        return None
    how = ending_of(code)
    return f"error: the process that loaded the changed files ended {how}; see what they do when imported"


def ending_of(code: int) -> str:
    """Return how a process ended, in words, from an exit code of `subprocess`."""
    return f"with exit code {code}" if code >= 0 else f"by signal {_name(-code)}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return str(number)


# Tells the operator that changed files take long to load, so that nobody waits in vain.

# After this, an author wonders why the change is not there.
_SLOW_S: Final = 3.0


class SlowReload:
    """The reload that has just begun."""

    def __init__(self) -> None:
        self._tell_at: float | None = time.monotonic() + _SLOW_S

    def tell_once(self) -> None:
        """Tell it if it is time."""
        if self._tell_at is not None and time.monotonic() >= self._tell_at:
            self._tell_at = None
            say("the changed files are still loading; what was served before stays in force until then")
