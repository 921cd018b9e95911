"""`Threads`: runs plain functions in worker threads, with a deadline that holds even if one never returns.

A thread cannot be killed. A thread that outlives its call's deadline is abandoned: it no longer counts, a new
one replaces it, and it ends when its function does. The number of abandoned threads is limited.

All bookkeeping runs on the event loop's thread. Workers wake it up once for all jobs that end before it
looks: a wake-up takes longer than a quick function. Where a worker and the loop race for the start or the
end of a job, the one that takes the job's token first wins; `list.pop` is atomic.

`LargeValues` redacts large values in a thread; `LoopTurn` acts once for all calls that end in one turn of
the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final, TypeVar

from portbook.errors import Failed, Reason, Refused
from portbook.exception_place import ToolExit
from portbook.net.taskless_waits import TasklessFuture

__all__ = ["LargeValues", "LoopTurn", "Threads"]

# With more hung functions, something is permanently broken, and more threads would not help.
_MAX_ABANDONED: Final = 64

# A longer queue could not be served before the deadlines of its calls.
_MAX_OUTSTANDING: Final = 4096

# Results that one turn of the loop takes: a large one takes a while to check, and others wait for the loop.
_MAX_AT_ONCE: Final = 8


class _ThreadJob:
    """One function to run, and the two tokens that decide its races."""

    __slots__ = ("arguments", "context", "end", "function", "future", "inbox", "start")

    def __init__(self, function: Callable[[Any], Any], arguments: Any, inbox: _Inbox) -> None:
        self.function = function
        self.arguments = arguments
        self.context = contextvars.copy_context()
        self.inbox = inbox
        self.future: asyncio.Future[Any] = inbox.loop.create_future()
        self.start = [None]
        self.end = [None]


class _Inbox:
    """The jobs that have ended and that their loop has not looked at yet: one wake-up serves all of them."""

    __slots__ = ("_ended", "_finish", "_wake", "loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        finish: Callable[[_ThreadJob, Any, BaseException | None], None],
    ) -> None:
        self.loop = loop
        self._finish = finish
        self._ended: deque[tuple[_ThreadJob, Any, BaseException | None]] = deque()
        self._wake = [None]
        """Its token is there while no wake-up is on its way."""

    def put(self, job: _ThreadJob, result: Any, error: BaseException | None) -> None:
        """Hand a job over that has ended. From any thread."""
        self._ended.append((job, result, error))
        if _take(self._wake):
            self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._wake.append(None)  # first: what comes from now on is either seen below, or wakes the loop again
        for _ in range(min(len(self._ended), _MAX_AT_ONCE)):
            self._finish(*self._ended.popleft())
        if self._ended and _take(self._wake):
            self.loop.call_soon(self._empty)


def _take(token: list[None]) -> bool:
    try:
        token.pop()
    except IndexError:
        return False
    return True


class Threads:
    """A pool of threads that can be abandoned. Threads start on first use."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: queue.SimpleQueue[_ThreadJob | None] = queue.SimpleQueue()
        self._threads = 0
        self._outstanding = 0
        self._abandoned = 0
        self._inbox: _Inbox | None = None

    async def run(self, function: Callable[[Any], Any], arguments: Any, timeout_s: float) -> Any:
        """Run `function(arguments)` in a worker and return its result.

        Raises `Refused` where no worker was free in time, `Failed` where it did not end in time, and any
        exception of the function.
        """
        loop = asyncio.get_running_loop()
        inbox = self._inbox
        if inbox is None or inbox.loop is not loop:
            self._inbox = inbox = _Inbox(loop, self._finished)
        job = _ThreadJob(function, arguments, inbox)
        if self._outstanding >= _MAX_OUTSTANDING or (not self._threads and self._abandoned >= _MAX_ABANDONED):
            raise Refused(Reason.BUSY)
        self._outstanding += 1
        self._add_thread()
        self._jobs.put(job)
        deadline = loop.call_later(timeout_s, self._give_up, job)
        try:
            return await job.future
        except BaseException:  # cancelled or closed; a job that has ended has no tokens left
            self._abandon(job)
            raise
        finally:
            deadline.cancel()

    def close(self) -> None:
        """End every thread once it is idle; after that, nothing can run."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _add_thread(self) -> None:
        """Start a thread if there are more jobs than threads and the limits allow it."""
        if self._threads < min(self._outstanding, self._size) and self._abandoned < _MAX_ABANDONED:
            with contextlib.suppress(RuntimeError):  # the system has no more threads
                threading.Thread(target=self._work, name="portbook-worker", daemon=True).start()
                self._threads += 1

    def _give_up(self, job: _ThreadJob) -> None:
        never_ran = self._abandon(job)
        if not job.future.done():
            job.future.set_exception(Refused(Reason.BUSY) if never_ran else Failed(Reason.TIMEOUT))

    def _abandon(self, job: _ThreadJob) -> bool:
        """Stop waiting for `job`; return whether it never started."""
        if _take(job.start):
            self._outstanding -= 1
            return True
        if _take(job.end):
            self._outstanding -= 1
            self._threads -= 1
            self._abandoned += 1
            self._add_thread()  # for the jobs that wait in the queue
        return False

    def _finished(self, job: _ThreadJob, result: Any, error: BaseException | None) -> None:
        self._outstanding -= 1
        if job.future.done():
            return
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)

    def _returned(self) -> None:
        self._abandoned -= 1
        self._add_thread()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            if not _take(job.start):
                continue  # abandoned while it waited
            result: Any = None
            error: Exception | None = None
            try:
                result = job.context.run(job.function, job.arguments)
            except StopIteration as raised:  # a future cannot carry it
                error = ToolExit(raised)
            except Exception as raised:  # noqa: BLE001 - passed to the waiting call
                error = raised
            except BaseException as raised:  # noqa: BLE001 - sys.exit() in a tool ends the call, not the server
                error = ToolExit(raised)
            in_time = _take(job.end)
            with contextlib.suppress(RuntimeError):  # the loop is closed, and no call waits
                if in_time:
                    job.inbox.put(job, result, error)
                else:
                    job.inbox.loop.call_soon_threadsafe(self._returned)
            if not in_time:
                return
            del job, result, error  # a waiting thread must not keep the last call's values alive


# `LargeValues`: large values are redacted in a thread, while the event loop serves other calls.

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


# `LoopTurn`: does something once at the end of a turn of the event loop, for all who wait for it.
#
# The answers of a server often come many at a time, and the calls that waited for them end in the same
# turn.


class LoopTurn:
    """The present turn of the event loop."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[TasklessFuture[None]] = []

    async def end(self, finish: Callable[[], None]) -> None:
        """Return after `finish` was called: by the first who waits in this turn, when all others do, too."""
        loop = asyncio.get_running_loop()
        waiter = TasklessFuture[None](loop=loop)  # of its own: one of them may be cancelled
        if loop is not self._loop:  # of those who waited in a loop that was stopped, nobody is left
            self._loop, self._waiting = loop, []
        if not self._waiting:
            loop.call_soon(self._finish, finish)
        self._waiting.append(waiter)
        await waiter

    def _finish(self, finish: Callable[[], None]) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            finish()
        finally:
            for waiter in waiting:
                if not waiter.done():
                    waiter.settle(None)
