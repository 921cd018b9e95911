"""What a task of ours ended with that it did not expect: told by its type and place, never by its words.

An exception that nobody takes would be printed with everything in it, credentials included.
"""

from __future__ import annotations

import asyncio

from portbook.exception_place import place_of
from portbook.upstreams.transport import ConnectionLost

__all__ = ["unexpected_end"]


def unexpected_end(task: asyncio.Task[None]) -> ConnectionLost | None:
    """Return the failure of a task that has ended; None where it ended as it should, or was cancelled."""
    error = None if task.cancelled() else task.exception()
    return None if error is None else ConnectionLost(f"Portbook could not go on with it: {place_of(error)}")
