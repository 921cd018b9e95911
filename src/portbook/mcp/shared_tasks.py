"""`SharedTasks`: tasks of all nodes that share a store. Those of this one are stored, the others read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, cast
from weakref import WeakValueDictionary

from portbook.canonical import json_bytes
from portbook.clock import Clock
from portbook.errors import Failed, Reason
from portbook.mcp.from_any_thread import run_on
from portbook.mcp.node import Node
from portbook.mcp.remote_task import RemoteTask, lost_task, stored_text
from portbook.mcp.task_board import Task, TaskBoard
from portbook.model import JSONObject
from portbook.stores.mailbox import DraftMail, Mail
from portbook.stores.store_errors import StoreError
from portbook.stores.task_rows import StoredTask, TaskRows
from portbook.wire.parsing import parse

__all__ = ["SharedTasks"]

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
