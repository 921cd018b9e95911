"""The running members of a connection's batches, each of which the client can cancel.

A door knows a batch only as a whole; its members run one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any, Final

from portbook.model import Answer

__all__ = ["MAX_BATCH", "BatchMembers"]

# Enough for a client that batches its messages; a larger array would bypass every limit.
MAX_BATCH: Final = 100


class BatchMembers:
    """Runs members of batches in tasks of their own, by the keys of their requests."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Answer]] = {}

    async def run(self, key: Hashable, answering: Coroutine[Any, Any, Answer]) -> Answer | None:
        """Return the answer to a member; None if the client has cancelled it."""
        running = self._running[key] = asyncio.get_running_loop().create_task(answering)
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError:  # of the batch as a whole
            running.cancel()
            await asyncio.wait((running,))  # until it is recorded
            raise
        finally:
            running.cancel()  # it has ended, unless the batch was closed
            del self._running[key]
        return None if running.cancelled() else running.result()

    def cancel(self, key: Hashable) -> bool:
        """Cancel the member with this key; return whether it is running."""
        running = self._running.get(key)
        if running is not None:
            # Soon: a task that is cancelled before its first step leaves no record.
            running.get_loop().call_soon(running.cancel)
        return running is not None
