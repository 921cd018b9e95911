"""The way to the client while a call runs: reports, notifications and requests, in order, until it ends.

Reports wait in a queue of limited size until there is room for them at the client's side, and are redacted,
checked and written only then: of a flood of reports, most never are. The event loop passes them on in short
steps, so that other calls run in between.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, Protocol

from portbook.mcp.from_any_thread import is_on, run_on
from portbook.mcp.report_queue import ReportQueue, Waiting
from portbook.model import Draft

__all__ = ["Emit", "Outlet"]

# What one step on the loop finishes. Redaction of this much takes 4 ms in the worst case, or 16 ms more if
# the last report of the step is as large as one may be.
_STEP_BYTES: Final = 8 * 1024

# Queues are made with the first message of a call, of which most send none; any thread may send it.
_making = threading.Lock()


class Emit(Protocol):
    """Sends a notification or a request to the client. From any thread."""

    def __call__(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Send `message`, if it is still wanted then; one that is not vital may be dropped.

        With `on_room`, it is not dropped where there is no room for it now: then this returns False, and
        `on_room` is called as soon as there is. Only on the event loop's thread.
        """
        ...


class Outlet:
    """One call's way to its client. It ends with the call: later messages are dropped."""

    __slots__ = ("_emit", "_is_over", "_let_go", "_loop", "_queue", "reaches_client")

    def __init__(
        self,
        emit: Emit,
        let_go: Callable[[], None] | None = None,
        *,
        reaches_client: bool = True,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Send with `emit`, on the event loop `loop`: by default the one that runs in this thread."""
        self._emit = emit
        self._let_go = let_go
        self.reaches_client = reaches_client
        """Whether the client gets messages before the answer."""
        self._is_over = False
        self._loop = loop or asyncio.get_running_loop()
        self._queue: ReportQueue | None = None

    def report(self, draft: Draft[bytes | None]) -> None:
        """Send a report, finished when its turn comes. From any thread; all but the loop's may wait."""
        queue = self._opened()
        if not is_on(self._loop):
            queue.wait_for_room(draft.size)
        if queue.put(draft, is_vital=False):
            # Never at once: a tool on the loop that reports without a pause is cut into steps, too.
            self._loop.call_soon_threadsafe(self._pass_on)

    def tell(self, message: bytes) -> None:
        """Send a message that may be dropped. From any thread."""
        if self._opened().put(_ready(message), is_vital=False):
            run_on(self._loop, self._pass_on)

    def send(self, message: bytes) -> None:
        """Send a message that must arrive, after all that waits. From any thread."""
        self._opened().put(_ready(message), is_vital=True)
        run_on(self._loop, self.flush)

    async def room(self) -> None:
        """Let other calls run, then wait for room for the next report, but not for long."""
        if self._queue is not None:
            await self._queue.room()

    def flush(self) -> None:
        """Pass on all that waits, whether there is room or not: the answer comes next."""
        for each in () if self._queue is None else self._queue.take():
            self._emit_finished(each, is_forced=True)

    def end(self) -> None:
        """Drop what waits and what is still to come: the call has ended."""
        self._is_over = True
        if self._queue is not None:
            self._queue.close()

    def let_go(self) -> None:
        """Close the stream that the client waits on, if it is resumable."""
        if self._let_go is not None:
            self._let_go()

    def _opened(self) -> ReportQueue:
        if self._queue is None:
            with _making:
                self._queue = self._queue or ReportQueue(self._loop)
                if self._is_over:
                    self._queue.close()
        return self._queue

    def _pass_on(self) -> None:
        """Pass on a few of those that wait; the rest with the next step, or when there is room for it."""
        assert self._queue is not None
        taken = self._queue.take(_STEP_BYTES)
        for number, each in enumerate(taken):
            unsent = self._emit_finished(each)
            if unsent is not None:
                self._queue.put_back([unsent, *taken[number + 1 :]])
                return
        if not self._queue.is_idle:
            self._loop.call_soon(self._pass_on)

    def _emit_finished(self, waiting: Waiting, *, is_forced: bool = False) -> Waiting | None:
        """Finish and send a message; return it, finished, where there is no room for it."""
        message = waiting.draft.finish()
        if message is None:
            return None
        is_vital = waiting.is_vital or is_forced
        on_room = None if is_vital else self._pass_on
        is_sent = self._emit(message, self._is_wanted, is_vital=is_vital, on_room=on_room)
        return None if is_sent else waiting._replace(draft=_ready(message))

    def _is_wanted(self) -> bool:
        return not self._is_over


def _ready(message: bytes) -> Draft[bytes | None]:
    return Draft(len(message), lambda: message)
