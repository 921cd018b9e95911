"""Calls from any thread: at once on the event loop's own thread, soon on the loop from a different one.

Tools run in threads, and report progress, log and ask their clients from there. What they touch belongs to
the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVarTuple

__all__ = ["is_on", "run_on"]

Arguments = TypeVarTuple("Arguments")


def run_on(
    loop: asyncio.AbstractEventLoop, act: Callable[[*Arguments], object], *arguments: *Arguments
) -> None:
    """Call `act` on `loop`: now if the loop runs this very code, else soon, in the order of the calls."""
    if is_on(loop):
        act(*arguments)
    else:
        loop.call_soon_threadsafe(act, *arguments)


def is_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether `loop` runs this very code."""
    return _running_loop() is loop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # a thread without a loop, as most threads are
        return None
