"""The reports of one call that wait for their client: in order, bounded, and filled from any thread.

A tool can report faster than its client reads. While the queue is full, the tool waits for room, and so a
client that reads misses nothing. It does not wait for a client that reads nothing, nor for long altogether:
then the oldest reports are dropped, because of progress the newest says all.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final, Protocol, TypeVarTuple

from portbook.model import Draft
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "MAX_BYTES",
    "MAX_REPORTS",
    "PATIENCE_S",
    "Emit",
    "Outlet",
    "ReportQueue",
    "Waiting",
    "is_on",
    "run_on",
]

# What waits for one call.
MAX_REPORTS: Final = 256
MAX_BYTES: Final = 64 * 1024

# What a report costs beside its text, in bytes of text: its check and its JSON.
_REPORT_BYTES: Final = 256

# After so many reports, a thread gives way: far less than a millisecond of them.
_GIVES_WAY: Final = 32

# How long a tool waits for room: for a client that takes nothing, and altogether. A call that takes longer
# because of its reports may miss its deadline, and reports are not worth that.
GLANCE_S: Final = 0.5
PATIENCE_S: Final = 2.0


class Waiting(NamedTuple):
    """A message that waits; one that is not vital may be dropped."""

    draft: Draft[bytes | None]
    is_vital: bool


class ReportQueue:
    """A queue between a tool, in whatever thread it runs, and the event loop, which alone takes from it."""

    __slots__ = (
        "_bytes",
        "_has_room",
        "_is_closed",
        "_loop",
        "_opened",
        "_patience_s",
        "_reports",
        "_spare",
        "_waiting",
        "is_idle",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Waiting] = deque()
        self._spare = self._bytes = 0
        """How many of those that wait may be dropped, and their bytes."""
        self.is_idle = True
        """Whether nothing waits, and so nobody comes to take it."""
        self._is_closed = False
        self._patience_s = PATIENCE_S
        self._reports = 0
        self._opened = threading.Condition(threading.Lock())
        self._has_room = asyncio.Event()

    def put(self, draft: Draft[bytes | None], *, is_vital: bool) -> bool:
        """Add a message, and drop the oldest reports if there are too many.

        Return whether the queue was idle: then somebody has to be told to take from it.
        """
        with self._opened:
            if self._is_closed:
                return False
            self._waiting.append(Waiting(draft, is_vital))
            self._count(self._waiting[-1], 1)
            while self._spare and (self._spare > MAX_REPORTS or self._bytes > MAX_BYTES):
                self._drop_oldest()
            was_idle, self.is_idle = self.is_idle, False
            return was_idle

    def take(self, most_bytes: float = inf) -> list[Waiting]:
        """Take all messages, or the first that cost about so many bytes of text.

        Not one by one: a thread that loses its turn while it holds the lock keeps the loop waiting for it.
        """
        with self._opened:
            taken: list[Waiting] = []
            cost = 0
            while self._waiting and cost < most_bytes:
                first = self._waiting.popleft()
                self._count(first, -1)
                cost += first.draft.size + _REPORT_BYTES
                taken.append(first)
            self.is_idle = not self._waiting
            # Half of it at once: a thread that is woken for each report does little else.
            if self._is_half_empty:
                self._wake()
            return taken

    def put_back(self, unsent: list[Waiting]) -> None:
        """Put back what was taken, because there is no room for it yet; whoever makes room will tell."""
        with self._opened:
            if not self._is_closed:
                self.is_idle = False
                for each in reversed(unsent):
                    self._waiting.appendleft(each)
                    self._count(each, 1)

    def close(self) -> None:
        """Drop all that waits, and all that is still to come: the call has ended."""
        with self._opened:
            self._is_closed = True
            self._waiting.clear()
            self._spare = self._bytes = 0
            self._wake()

    def wait_for_room(self, size: int) -> None:
        """Wait until a report of this size has room. In a tool's thread; the loop's own never waits."""
        with self._opened:
            self._reports += 1
            is_due = self._reports % _GIVES_WAY == 0
            while self._patience_s > 0 and not self._has_room_for(size):
                began = self._loop.time()
                is_open = self._opened.wait(min(GLANCE_S, self._patience_s))
                self._spend(began, is_open=is_open)
        if is_due:
            time.sleep(0)  # lets the loop have the interpreter, which threads take for 5 ms each otherwise

    async def room(self) -> None:
        """Let other calls run, then wait until the next report has room, whatever its size. On the loop."""
        if not is_on(self._loop):  # a tool with a loop of its own, in a thread, has waited already
            return
        if self._waiting:
            await asyncio.sleep(0)
        while self._patience_s > 0 and not self._is_half_empty:
            began = self._loop.time()
            self._has_room.clear()
            try:
                async with asyncio.timeout(min(GLANCE_S, self._patience_s)):
                    await self._has_room.wait()
            except TimeoutError:
                self._spend(began, is_open=False)
            else:
                self._spend(began, is_open=True)

    @property
    def _is_half_empty(self) -> bool:
        return self._spare <= MAX_REPORTS // 2 and self._bytes <= MAX_BYTES // 2

    def _has_room_for(self, size: int) -> bool:
        return not self._spare or (self._spare < MAX_REPORTS and self._bytes + size <= MAX_BYTES)

    def _spend(self, began: float, *, is_open: bool) -> None:
        self._patience_s = self._patience_s - (self._loop.time() - began) if is_open else 0.0

    def _wake(self) -> None:
        self._opened.notify_all()
        if is_on(self._loop):
            self._has_room.set()

    def _drop_oldest(self) -> None:
        dropped = next(each for each in self._waiting if not each.is_vital)
        self._waiting.remove(dropped)
        self._count(dropped, -1)

    def _count(self, waiting: Waiting, sign: int) -> None:
        if not waiting.is_vital:
            self._spare += sign
            self._bytes += sign * waiting.draft.size


# `Outlet`: the way to the client while a call runs: reports, notifications and requests, until it ends.
#
# Reports wait in a queue of limited size until there is room for them at the client's side, and are redacted,
# checked and written only then: of a flood of reports, most never are. The event loop passes them on in short
# steps, so that other calls run in between.

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


# Calls from any thread: at once on the event loop's own thread, soon on the loop from a different one.
#
# Tools run in threads, and report progress, log and ask their clients from there. What they touch belongs
# to the loop.

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
