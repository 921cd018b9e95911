"""Tasks over two nodes in this process: one of them runs a task, and all say the same of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from portbook.clock import SystemClock
from portbook.errors import Reason
from portbook.mcp.node_mail_and_relay import Node, NodeLease
from portbook.mcp.shared_tasks import RemoteTask, SharedTasks, lost_task
from portbook.mcp.task_board import Task, TaskBoard
from portbook.stores.mailbox import Mailbox
from portbook.stores.sqlite_store import Store
from portbook.stores.task_rows import TaskRows
from support.mcp_http_client import run


@asynccontextmanager
async def board_at(path: Path) -> AsyncIterator[tuple[TaskBoard, SharedTasks]]:
    store, clock = Store(path), SystemClock()
    node = Node(NodeLease(store, os.urandom), Mailbox(store, clock), store.version)
    board = TaskBoard(clock)
    board.elsewhere = shared = SharedTasks(node, TaskRows(store, clock), board, clock)
    node.start()
    while not node.store_bell.turn:
        await asyncio.sleep(0.001)
    try:
        yield board, shared
    finally:
        await shared.flush()
        await node.close()
        store.close()
        node.release()


async def seen(shared: SharedTasks, task: Task) -> Any:
    [found] = await shared.fetch([task.id], task.bound)
    return found.state()["status"]


async def until_seen(shared: SharedTasks, task: Task, status: str) -> None:
    async with asyncio.timeout(30):
        while await seen(shared, task) != status:
            await asyncio.sleep(0.005)


def test_a_task_that_a_different_node_cancelled_stays_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        async with board_at(tmp_path / "db") as (board, own), board_at(tmp_path / "db") as (_, other):
            task = board.make("caller")
            await own.publish(task)
            [remote] = await other.fetch([task.id], "caller")
            remote.cancel()
            await other.settle()
            task.end("completed", {"result": {}})  # before this node hears of it, or after
            await own.flush()
            assert await seen(other, task) == "cancelled"
            async with asyncio.timeout(30):
                while task.state()["status"] != "cancelled":
                    await asyncio.sleep(0.005)
            assert "result" not in task.state()

    run(main())


def test_a_task_is_seen_by_its_caller_alone_and_as_long_as_somebody_looks(tmp_path: Path) -> None:
    async def main() -> None:
        async with board_at(tmp_path / "db") as (board, own), board_at(tmp_path / "db") as (there, other):
            task = board.make("caller")
            await own.publish(task)
            assert await other.fetch([task.id], "stranger") == []
            assert there.find(task.id, "caller") is None
            fetched = await other.fetch_all("caller")
            assert there.find(task.id, "caller") is fetched[0]
            assert there.of("caller") == fetched
            assert await own.fetch([task.id], "caller") == []  # its own node has it already
            changes: list[object] = []
            stop = fetched[0].watch(lambda: changes.append(fetched[0].state()["status"]))
            task.end("completed", {"result": {}})
            await until_seen(other, task, "completed")
            stop()
            assert changes == ["completed"]

    run(main())


def test_a_task_of_a_node_that_is_gone_is_lost_for_all(tmp_path: Path) -> None:
    async def main() -> None:
        async with board_at(tmp_path / "db") as (_, one), board_at(tmp_path / "db") as (_, two):
            async with board_at(tmp_path / "db") as (board, own):
                task = board.make("caller")
                await own.publish(task)
                assert [await seen(each, task) for each in (one, two)] == ["working"] * 2
            assert [await seen(each, task) for each in (one, two)] == ["failed"] * 2
            [first], [second] = await one.fetch([task.id], "caller"), await two.fetch([task.id], "caller")
            assert first.state() == second.state()

    run(main())


def test_a_task_that_was_taken_for_lost_is_lost_at_its_own_node_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with board_at(tmp_path / "db") as (board, own), board_at(tmp_path / "db") as (_, other):
            task = board.make("caller")
            await own.publish(task)
            store = Store(tmp_path / "db")
            rows = TaskRows(store, SystemClock())
            [stored] = await rows.find([task.id])
            await asyncio.wrap_future(rows.save(lost_task(stored, SystemClock().now())))
            task.end("completed", {"result": {}})
            async with asyncio.timeout(30):
                while task.state()["status"] != "failed":
                    await asyncio.sleep(0.005)
            [seen_there] = await other.fetch([task.id], "caller")
            assert task.state()["error"] == seen_there.state()["error"]
            assert task.failure is not None
            assert task.failure.reason is Reason.OUTCOME_UNKNOWN
            assert "result" not in task.state()
            store.close()

    run(main())


def test_a_list_reads_no_results_and_they_are_there_when_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with board_at(tmp_path / "db") as (board, own), board_at(tmp_path / "db") as (there, other):
            task = board.make("caller")
            await own.publish(task)
            task.say("m" * 10_000)  # too long for a list
            await own.flush()
            [shown] = await other.fetch_all("caller")
            assert "statusMessage" not in shown.state()
            del shown
            task.end("completed", {"result": {"text": "x" * 300_000}})
            await own.flush()
            listed = await other.fetch_all("caller")
            [shown] = there.of("caller")
            assert isinstance(shown, RemoteTask)
            assert len(shown.stored.state) < 1000
            assert shown.state()["status"] == "completed"
            assert "result" not in shown.state()
            assert there.find(task.id, "caller") is None  # it was not fetched as a whole
            fetched = await other.fetch([task.id], "caller")
            assert fetched == listed
            assert there.read(task.id, "caller") == task.state()
            assert await other.fetch_all("caller") == fetched
            assert there.read(task.id, "caller") == task.state()  # a list takes nothing from it

    run(main())
