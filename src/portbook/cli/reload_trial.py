"""A trial of changed files: another process loads them first, and an import that hangs holds up no client."""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from typing import Final

from portbook.cli.load_failure import load_failure

__all__ = ["TRIAL", "is_trial", "try_to_load"]

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
