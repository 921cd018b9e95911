"""`SharedTasks`: tasks of all nodes that share a store. Those of this one are stored, the others read.

A task whose node is gone has failed: its outcome is unknown.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, Protocol, cast
from weakref import WeakValueDictionary

from portbook.canonical import json_bytes
from portbook.clock import Clock
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.mcp.node_mail_and_relay import Node
from portbook.mcp.report_queue import run_on
from portbook.mcp.task_board import Task, TaskBoard
from portbook.model import JSON, JSONObject
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.mailbox import DraftMail, Mail
from portbook.stores.task_rows import MAX_OUTLINE, StoredTask, TaskRows
from portbook.wire.jsonrpc import generic_error
from portbook.wire.parsing import parse

__all__ = ["RemoteTask", "SharedTasks", "TaskPost", "lost_task", "stored_text"]

# Something is said to a task: answers, that there is none, or that it is cancelled.
_TASK: Final = "task"

# How often it is checked whether the node of a watched task lives.
_LOOK_S: Final = 1.0


class SharedTasks:
    """The tasks of other nodes, and how they know of those of this one."""

    def __init__(self, node: Node, rows: TaskRows, board: TaskBoard, clock: Clock) -> None:
        self._node = node
        self._rows = rows
        self._board = board
        self._clock = clock
        self._remote: WeakValueDictionary[str, RemoteTask] = WeakValueDictionary()
        self._watched: Counter[RemoteTask] = Counter()
        self._watching: asyncio.Task[None] | None = None
        self._writing: set[Future[bool]] = set()
        self._overruling: set[asyncio.Task[None]] = set()
        self._said: list[Future[int] | Future[bool]] = []
        node.on(_TASK, self._hear)

    async def publish(self, task: Task) -> None:
        """Store a task of this node, now and after all its changes."""
        loop, number = asyncio.get_running_loop(), 0

        def save() -> Future[bool] | None:
            nonlocal number
            number += 1
            text = stored_text(task.state(), task.failure)
            stored = StoredTask(task.id, task.bound, self._node.name, number, task.is_over, text)
            try:
                saving = self._rows.save(stored)
            except StoreError:
                return None
            self._writing.add(saving)
            saving.add_done_callback(lambda saved: run_on(loop, self._saved, task, saved))
            return saving

        task.watch(lambda: run_on(loop, save))
        saving = save()
        if saving is not None:
            try:
                await asyncio.wrap_future(saving)
            except StoreError:
                return  # this node alone knows it

    def _saved(self, task: Task, saved: Future[bool]) -> None:
        self._writing.discard(saved)
        self._node.wake()
        if saved.exception() is None and not saved.result():
            overruling = asyncio.get_running_loop().create_task(self._overrule(task))
            self._overruling.add(overruling)
            overruling.add_done_callback(self._overruling.discard)

    async def _overrule(self, task: Task) -> None:
        """Take over how a task of this node has ended: others cancelled it, or took this node for gone."""
        try:
            found = await self._rows.find([task.id])
        except StoreError:
            return  # then this node goes on to say what it came to here
        for stored in found:
            ended = RemoteTask(stored, self, self._clock.now)
            task.overrule(*ended.ending())

    async def fetch(self, ids: Sequence[str], bound: str) -> list[Task]:
        """Return those of these tasks that other nodes run for a caller."""
        wanted = [each for each in ids if self._board.find_own(each) is None]
        found = await self._read(wanted) if wanted else []
        return [self._show(each) for each in found if each.bound == bound]

    async def fetch_all(self, bound: str) -> list[Task]:
        """Return all tasks that other nodes run for a caller, without their results."""
        try:
            found = await self._rows.of(bound)
        except StoreError:
            return []
        return [self._show(await self._settled(each)) for each in found if self._is_remote(each)]

    def find(self, task_id: str) -> Task | None:
        """Return a task that was fetched by its id."""
        task = self._remote.get(task_id)
        return None if task is None or task.stored.is_outline else task

    def of(self, bound: str) -> list[Task]:
        """Return those tasks of a caller that were fetched."""
        return [task for task in self._remote.values() if task.bound == bound]

    async def settle(self) -> None:
        """Wait until what was said to tasks of other nodes is stored."""
        said, self._said = self._said, []
        for each in said:
            try:
                await asyncio.wrap_future(cast("Future[object]", each))
            except StoreError:
                continue
        self._node.wake()

    async def flush(self) -> None:
        """Wait until the tasks of this node are stored as they are."""
        if self._writing:
            await asyncio.wait([asyncio.wrap_future(each) for each in self._writing])

    # -- for remote tasks

    def say(self, task: RemoteTask, what: JSONObject) -> None:
        """Tell the node that runs a task something of it."""
        try:
            self._said.append(self._node.post(self._mail(task, what)))
        except StoreError:
            return

    def cancel(self, task: RemoteTask) -> None:
        """Cancel a task for all nodes, and tell the one that runs it."""
        content: JSONObject = {**task.state(), "lastUpdatedAt": self._clock.now()}
        ended = task.stored._replace(
            number=task.stored.number + 1, is_over=True, state=stored_text(content, None)
        )
        try:
            self._said.append(self._rows.save(ended, (self._mail(task, {"cancel": True}),)))
        except StoreError:
            return

    def watch(self, task: RemoteTask) -> Callable[[], None]:
        """Read a task again whenever the store has changed; return the function that stops that."""
        self._watched[task] += 1
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

        def stop() -> None:
            self._watched[task] -= 1
            if self._watched[task] <= 0:
                del self._watched[task]

        return stop

    async def prune(self) -> None:
        """Delete old tasks."""
        gone = [node for node in await self._rows.nodes() if not await self._node.lives(node)]
        await self._rows.prune(gone)

    async def _watch(self) -> None:
        try:
            while self._watched:
                turn = self._node.store_bell.turn
                for stored in await self._read([task.id for task in self._watched]):
                    self._show(stored)
                if self._watched:
                    await self._node.store_bell.wait(turn, _LOOK_S)
        finally:
            self._watching = None

    async def _read(self, ids: Sequence[str]) -> list[StoredTask]:
        try:
            found = await self._rows.find(ids)
        except StoreError:
            return []
        return [await self._settled(each) for each in found]

    async def _settled(self, stored: StoredTask) -> StoredTask:
        """Return a task as it is; its outcome is unknown if its node is gone without having ended it."""
        if stored.is_over:
            return stored
        try:
            if await self._node.lives(stored.node):
                return stored
            [current] = await self._rows.find([stored.id]) or [stored]  # what its node wrote last
            if not current.is_over:
                current = lost_task(current, self._clock.now())
                await asyncio.wrap_future(self._rows.save(current))
        except StoreError:
            return stored
        return current

    def _is_remote(self, stored: StoredTask) -> bool:
        return self._board.find_own(stored.id) is None

    def _show(self, stored: StoredTask) -> RemoteTask:
        task = self._remote.get(stored.id)
        if task is None:
            task = self._remote[stored.id] = RemoteTask(stored, self, self._clock.now)
        elif not stored.is_outline:  # one that somebody waits for is renewed as a whole
            task.renew(stored)
        return task

    def _mail(self, task: RemoteTask, what: JSONObject) -> DraftMail:
        body: JSONObject = {"task": task.id, "bound": task.bound, **what}
        return DraftMail(_TASK, json_bytes(body).decode(), node=task.stored.node)

    async def _hear(self, mail: Mail) -> None:
        """Do what a different node says to a task of this one."""
        said = cast("JSONObject", parse(mail.body.encode()))
        task = self._board.find_own(str(said["task"]))
        if task is None or task.bound != said["bound"]:
            return
        if said.get("cancel") is True:
            task.cancel()
        elif "refused" in said:
            task.refuse(str(said["refused"]), Failed(Reason.NO_ANSWER, details={"why": said["why"]}))
        else:
            task.answer(cast("JSONObject", said["answers"]))


# `RemoteTask`: a task that a different node runs, as the store has it.
#
# What is said to it goes to that node, which alone decides. It is read again while it is watched.

# What a list does not show of a task.
_NOT_LISTED: Final = ("result", "error", "inputRequests")

_OVER: Final = ("completed", "failed", "cancelled")


class TaskPost(Protocol):
    """Reaches the nodes that run tasks."""

    def say(self, task: RemoteTask, what: JSONObject) -> None:
        """Tell the node that runs a task something of it."""
        ...

    def cancel(self, task: RemoteTask) -> None:
        """Cancel a task, for all nodes."""
        ...

    def watch(self, task: RemoteTask) -> Callable[[], None]:
        """Read a task again whenever it changes; return the function that stops that."""
        ...


class RemoteTask(Task):
    """A task of a different node."""

    def __init__(self, stored: StoredTask, post: TaskPost, now: Callable[[], str]) -> None:
        """See the task as it is stored; `post` reaches its node."""
        super().__init__(stored.id, stored.bound, now)
        self._post = post
        self._said: set[str] = set()
        self._show(stored)

    def _show(self, stored: StoredTask) -> None:
        self.stored = stored
        content = _content_of(stored)
        self._state = cast("JSONObject", content["state"])
        self.failure = _ending_of(content.get("failure"))
        self.made_at = str(self._state["createdAt"])
        self.changed_at = str(self._state["lastUpdatedAt"])

    def renew(self, stored: StoredTask) -> None:
        """Take over what its node has stored since."""
        is_more = self.stored.is_outline and not stored.is_outline
        if is_more or (stored.number, stored.is_over) != (self.stored.number, self.stored.is_over):
            self._show(stored)
            for watcher in tuple(self._watchers):
                watcher()

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self._state["status"] in _OVER

    @property
    def is_waiting(self) -> bool:
        """Return whether it waits for its caller's answers."""
        return bool(self.questions())

    def state(self) -> JSONObject:
        """Return its state, as its caller sees it."""
        return self._state

    def ending(self) -> tuple[str, JSONObject, Ending | None]:
        """Return its status, what it ended with, and why it failed."""
        ending = {name: self._state[name] for name in ("result", "error") if name in self._state}
        return str(self._state["status"]), ending, self.failure

    def questions(self) -> dict[str, JSONObject]:
        """Return what it asks and nobody has answered here."""
        asked = cast("dict[str, JSONObject]", self._state.get("inputRequests") or {})
        return {key: request for key, request in asked.items() if key not in self._said}

    def answer(self, answers: JSONObject) -> None:
        """Hand answers to its node, which ignores those that are no use."""
        asked = self.questions()
        told: JSONObject = {key: answer for key, answer in answers.items() if key in asked}
        if told:
            self._said.update(told)
            self._post.say(self, {"answers": told})

    def refuse(self, key: str, failure: Failed) -> None:
        """End a question without an answer."""
        self._said.add(key)
        self._post.say(self, {"refused": key, "why": str(failure.details.get("why", ""))})

    def cancel(self) -> None:
        """Cancel it, if it has not ended."""
        if not self.is_over:
            self._state = {
                **{name: value for name, value in self._state.items() if name != "inputRequests"},
                "status": "cancelled",
            }
            self._post.cancel(self)

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call `watcher` after every change; return the function that stops it."""
        forget, stop = super().watch(watcher), self._post.watch(self)

        def end() -> None:
            forget()
            stop()

        return end


def stored_text(state: JSONObject, failure: Ending | None) -> str:
    """Return the state of a task, and why it has failed, as the store has it.

    Before one that is large stands a line without what it ended with or asks: lists read no more of it.
    """
    content: JSONObject = {"state": state}
    if failure is not None:
        content["failure"] = {
            "reason": failure.reason.value,
            "is_refused": isinstance(failure, Refused),
            "findings": cast("JSON", [list(finding) for finding in failure.findings]),
            "details": cast("JSON", dict(failure.details)),
            "happened": failure.happened,
            "is_retryable": failure.is_retryable,
        }
    whole = json_bytes(content).decode()
    if len(whole) < MAX_OUTLINE:
        return whole
    outline: JSONObject = {name: value for name, value in state.items() if name not in _NOT_LISTED}
    line = json_bytes({"state": outline}).decode()
    if len(line) >= MAX_OUTLINE:
        outline.pop("statusMessage", None)
        line = json_bytes({"state": outline}).decode()
    return f"{line}\n{whole}"


def _content_of(stored: StoredTask) -> JSONObject:
    return cast("JSONObject", parse(stored.state.rpartition("\n")[2].encode()))


def _ending_of(stored: JSON) -> Ending | None:
    if not isinstance(stored, dict):
        return None
    kind = Refused if stored["is_refused"] else Failed
    findings = tuple(Finding(*cast("list[str]", each)) for each in cast("list[JSON]", stored["findings"]))
    return kind(
        Reason(str(stored["reason"])),
        findings,
        details=cast("JSONObject", stored["details"]),
        happened=cast("str | None", stored["happened"]),
        is_retryable=cast("bool", stored["is_retryable"]),
    )


def lost_task(stored: StoredTask, now: str) -> StoredTask:
    """Return how a task has ended whose node is gone: nobody knows its outcome."""
    lost = Failed(Reason.OUTCOME_UNKNOWN)
    content = _content_of(stored)
    state = cast("JSONObject", content["state"])
    kept = {name: value for name, value in state.items() if name not in ("inputRequests", "statusMessage")}
    ended: JSONObject = {
        **kept,
        "status": "failed",
        "lastUpdatedAt": now,
        "error": cast("JSON", generic_error(lost)),
    }
    return stored._replace(number=stored.number + 1, is_over=True, state=stored_text(ended, lost))
