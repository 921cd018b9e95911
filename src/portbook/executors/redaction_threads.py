"""`LargeValues`: large values are redacted in a thread, while the event loop serves other calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, TypeVar

__all__ = ["LargeValues"]

# The threads share one processor with the loop, which would wait longer for its turn with more of them.
_THREADS: Final = 2

_T = TypeVar("_T")


class LargeValues:
    """A few threads for work that would hold the loop; they are started with the first such work."""

    __slots__ = ("_threads",)

    def __init__(self) -> None:
        self._threads: Executor | None = None

    async def run(self, work: Callable[[], _T]) -> _T:
        """Return what `work` returns. Raises what it raises."""
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor  # late: most servers never need it

            self._threads = ThreadPoolExecutor(_THREADS, "portbook-large-values")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """End the threads when they have finished their work."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None
