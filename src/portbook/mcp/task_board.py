"""Tasks: calls that continue after their answer, until they expire."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, cast

from portbook.clock import Clock, until
from portbook.errors import Ending, Failed, Reason, Refused
from portbook.model import JSON, JSONObject

__all__ = ["Task", "TaskBoard", "TasksElsewhere"]

# How long a task can be queried after its last change, and how often clients should. A task that waits for
# answers waits as long.
_TTL_MS: Final = 3_600_000
_POLL_MS: Final = 500

# Tasks at once, of one caller and of all.
_MAX_OF_ONE: Final = 1000
_MAX: Final = 10_000

# How often expired tasks are removed.
_PRUNED_EVERY_S: Final = 60

IsUsable = Callable[[str, JSONObject], bool]


class Task:
    """One call that continues after its answer."""

    def __init__(self, identifier: str, bound: str, now: Callable[[], str]) -> None:
        self.id = identifier
        self.bound = bound
        """The digest of its caller's key."""
        self.running: asyncio.Task[None] | None = None
        self.made_at = self.changed_at = now()
        self._now = now
        self._status = "working"
        self._message: str | None = None
        self._ending: JSONObject = {}
        self.failure: Ending | None = None
        """Why it has no result, where it has failed."""
        self._open: dict[str, tuple[JSONObject, IsUsable, asyncio.Future[JSONObject]]] = {}
        self._watchers: list[Callable[[], None]] = []

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self._status in ("completed", "failed", "cancelled")

    @property
    def is_waiting(self) -> bool:
        """Return whether it waits for its caller's answers."""
        return bool(self._open)

    def state(self) -> JSONObject:
        """Return its state, as its caller sees it."""
        state: JSONObject = {
            "taskId": self.id,
            "status": "input_required" if self._open and not self.is_over else self._status,
            "createdAt": self.made_at,
            "lastUpdatedAt": self.changed_at,
            # Counted from its creation, as clients count.
            "ttlMs": int(until(self.made_at, self.changed_at) * 1000) + _TTL_MS,
            "pollIntervalMs": _POLL_MS,
        }
        if self._message is not None and not self.is_over:
            state["statusMessage"] = self._message
        if state["status"] == "input_required":
            state["inputRequests"] = cast(
                "JSON", {key: request for key, (request, _, _) in self._open.items()}
            )
        return state | self._ending

    async def ask(self, requests: Mapping[str, JSONObject], is_usable: IsUsable) -> dict[str, JSONObject]:
        """Return the answers to `requests`, once all have arrived.

        Raises `Failed` where they do not arrive in time.
        """
        loop = asyncio.get_running_loop()
        futures = {key: loop.create_future() for key in requests}
        self._open |= {key: (request, is_usable, futures[key]) for key, request in requests.items()}
        self._change()
        try:
            async with asyncio.timeout(_TTL_MS / 1000):
                return {key: await future for key, future in futures.items()}
        except TimeoutError:
            raise Failed(Reason.NO_ANSWER, details={"why": "no answer arrived in time"}) from None
        finally:
            for key in requests:
                self._open.pop(key, None)

    def answer(self, answers: JSONObject) -> None:
        """Accept answers to open questions; unrequested and unusable ones are ignored."""
        for key, answer in answers.items():
            if key not in self._open or not isinstance(answer, dict):
                continue
            _, is_usable, future = self._open[key]
            if not future.done() and is_usable(key, answer):
                future.set_result(answer)
                del self._open[key]
                self._change()

    def questions(self) -> dict[str, JSONObject]:
        """Return what it asks and nobody has answered yet."""
        return {key: request for key, (request, _, _) in self._open.items()}

    def refuse(self, key: str, failure: Failed) -> None:
        """End a question without an answer."""
        _, _, future = self._open.pop(key, (None, None, None))
        if future is not None and not future.done():
            future.set_exception(failure)
            self._change()

    def end(self, status: str, ending: JSONObject, failure: Ending | None = None) -> None:
        """Set its ending; a task that has ended does not change."""
        if not self.is_over:
            self._status, self._ending, self.failure = status, ending, failure
            self._open.clear()
            self._change()

    def overrule(self, status: str, ending: JSONObject, failure: Ending | None) -> None:
        """Set how it has ended for all nodes, whatever it came to here."""
        self._status, self._ending, self.failure = status, ending, failure
        self._open.clear()

    def say(self, message: str | None) -> None:
        """Set its status message."""
        if message != self._message:
            self._message = message
            self._change()

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call `watcher` after every change; return the function that stops it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def _change(self) -> None:
        self.changed_at = self._now()
        for watcher in tuple(self._watchers):
            watcher()

    def cancel(self) -> None:
        """Cancel it, if it has not ended."""
        if not self.is_over:
            self.end("cancelled", {})
            if self.running is not None:
                self.running.cancel()


class TasksElsewhere(Protocol):
    """The tasks that other nodes run, where several share the store."""

    async def publish(self, task: Task) -> None:
        """Let other nodes know of a task of this one, and of all its changes."""
        ...

    async def fetch(self, ids: Sequence[str], bound: str) -> list[Task]:
        """Return those of these tasks that other nodes run for a caller; `find` finds them while held."""
        ...

    async def fetch_all(self, bound: str) -> list[Task]:
        """Return all tasks that other nodes run for a caller."""
        ...

    def find(self, task_id: str) -> Task | None:
        """Return a task that was fetched."""
        ...

    def of(self, bound: str) -> list[Task]:
        """Return those tasks of a caller that were fetched."""
        ...

    async def settle(self) -> None:
        """Wait until what was said to tasks of other nodes is stored."""
        ...

    async def flush(self) -> None:
        """Wait until the tasks of this node are stored as they are."""
        ...


class TaskBoard:
    """The tasks of this process, each for the caller that made it."""

    def __init__(self, clock: Clock, draw: Callable[[int], bytes] = os.urandom) -> None:
        """Keep tasks by this `clock`; their ids are made of the bytes that `draw` gives."""
        self._clock = clock
        self._draw = draw
        self._tasks: dict[str, Task] = {}
        self._lets_end = False
        self.elsewhere: TasksElsewhere | None = None
        """The tasks of other nodes, where several share the store."""
        self._pruned_at = clock.tick()

    def make(self, bound: str) -> Task:
        """Return a new task.

        Raises `Refused` where its caller has too many.
        """
        self._prune()
        if len(self._tasks) >= _MAX:
            raise Refused(Reason.TOO_MANY_IN_FLIGHT, note="too many tasks")
        if sum(task.bound == bound for task in self._tasks.values()) >= _MAX_OF_ONE:
            raise Refused(Reason.RATE_LIMITED, note="too many tasks of this caller")
        task = Task(self._draw(16).hex(), bound, self._clock.now)
        self._tasks[task.id] = task
        return task

    def drop(self, task: Task) -> None:
        """Remove a task."""
        self._tasks.pop(task.id, None)

    def find(self, task_id: str, bound: str) -> Task | None:
        """Return a task; None where the caller has no such task."""
        self._prune()
        task = self._tasks.get(task_id)
        if task is None and self.elsewhere is not None:
            task = self.elsewhere.find(task_id)
        return task if task is not None and task.bound == bound else None

    def of(self, bound: str) -> list[Task]:
        """Return all tasks of a caller, the oldest first."""
        self._prune()
        own = [task for task in self._tasks.values() if task.bound == bound]
        if self.elsewhere is None:
            return own
        return sorted([*own, *self.elsewhere.of(bound)], key=lambda task: (task.made_at, task.id))

    def find_own(self, task_id: str) -> Task | None:
        """Return a task that this process runs, whoever made it."""
        return self._tasks.get(task_id)

    def read(self, task_id: str, bound: str) -> JSONObject | None:
        """Return the state of a task; None where the caller has no such task."""
        task = self.find(task_id, bound)
        return None if task is None else task.state()

    def answer(self, task_id: str, bound: str, answers: JSONObject) -> bool:
        """Give a task its answers; return whether the caller has such a task."""
        task = self.find(task_id, bound)
        if task is not None:
            task.answer(answers)
        return task is not None

    def cancel(self, task_id: str, bound: str) -> bool:
        """Cancel a task, if it has not ended; return whether the caller has such a task."""
        task = self.find(task_id, bound)
        if task is not None:
            task.cancel()
        return task is not None

    def take_over(self, other: TaskBoard) -> list[asyncio.Task[None]]:
        """Keep the tasks of a board that ends; return those that run."""
        moved, other._tasks = other._tasks, {}
        self._tasks |= moved
        return [task.running for task in moved.values() if task.running is not None and not task.is_over]

    def let_end(self) -> None:
        """From now on, let running tasks come to their end, rather than cancel them, before it is closed."""
        self._lets_end = True

    def let_none_end(self) -> None:
        """Take that back: cancel the tasks that it was said of."""
        if self._lets_end:
            self._lets_end = False
            for task in tuple(self._tasks.values()):
                task.cancel()

    async def close(self) -> None:
        """Cancel running tasks, unless they may end, and wait until they are recorded."""
        running = [task.running for task in self._tasks.values() if task.running is not None]
        for task in self._tasks.values():
            if not self._lets_end:
                task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self.elsewhere is not None:
            await self.elsewhere.flush()

    def _prune(self) -> None:
        if self._clock.tick() - self._pruned_at < _PRUNED_EVERY_S and len(self._tasks) < _MAX_OF_ONE:
            return
        self._pruned_at, now = self._clock.tick(), self._clock.now()
        old = [task for task in self._tasks.values() if task.is_over and _age_ms(task, now) > _TTL_MS]
        for task in old:
            self.drop(task)


def _age_ms(task: Task, now: str) -> float:
    return until(task.changed_at, now) * 1000
