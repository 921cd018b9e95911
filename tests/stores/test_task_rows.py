"""Tasks in the store: whoever ends one first has ended it."""

from __future__ import annotations

import asyncio

import pytest

from portbook.stores.mailbox import DraftMail, Mailbox
from portbook.stores.sqlite_store import Store
from portbook.stores.task_rows import StoredTask, TaskRows
from portbook.testing.fixed_time import FixedClock

TASK = StoredTask("t", "caller", "node", 1, False, "{}")


@pytest.fixture
def rows(store: Store, clock: FixedClock) -> TaskRows:
    return TaskRows(store, clock)


def test_a_task_that_has_ended_does_not_change(rows: TaskRows, store: Store) -> None:
    assert rows.save(TASK).result()
    cancelled = TASK._replace(number=2, is_over=True, state='"cancelled"')
    assert rows.save(cancelled, (DraftMail("task", node="node"),)).result()
    completed = TASK._replace(number=3, is_over=True, state='"completed"')
    assert not rows.save(completed, (DraftMail("task", node="node"),)).result()
    assert asyncio.run(rows.find(["t", "none"])) == [cancelled]
    mails = asyncio.run(Mailbox(store, FixedClock()).after(0, "node"))
    assert len(mails) == 1  # nothing is told of what does not count


def test_tasks_are_listed_for_their_caller_the_oldest_first(rows: TaskRows, clock: FixedClock) -> None:
    for name in ("b", "a", "c"):
        rows.save(TASK._replace(id=name, bound="caller" if name != "c" else "stranger")).result()
        clock.advance(1)
    assert [task.id for task in asyncio.run(rows.of("caller"))] == ["b", "a"]


def test_a_list_has_the_first_line_of_a_large_task_and_all_of_one_without(rows: TaskRows) -> None:
    large = "x" * 10_000
    for name, state in (("a", f"first\n{large}"), ("b", large), ("c", "short")):
        rows.save(TASK._replace(id=name, state=state)).result()
    listed = sorted(asyncio.run(rows.of("caller")))
    assert [(task.state, task.is_outline) for task in listed] == [
        ("first", True),
        (large, False),
        ("short", False),
    ]


def test_old_tasks_are_deleted_but_not_those_that_still_run(rows: TaskRows, clock: FixedClock) -> None:
    async def main() -> None:
        for name, node, is_over in (("ended", "a", True), ("lost", "gone", False), ("runs", "a", False)):
            rows.save(TASK._replace(id=name, node=node, is_over=is_over)).result()
        assert await rows.nodes() == {"a", "gone"}
        await rows.prune(["gone"])
        assert len(await rows.find(["ended", "lost", "runs"])) == 3
        clock.advance(3700)
        await rows.prune(["gone"])
        assert [task.id for task in await rows.find(["ended", "lost", "runs"])] == ["runs"]
        for is_over in (True, False):  # however many there are
            names = [f"{is_over}-{number}" for number in range(2_100)]
            for saved in [rows.save(TASK._replace(id=name, node="gone", is_over=is_over)) for name in names]:
                saved.result()
            clock.advance(3700)
            await rows.prune([] if is_over else ["gone"])
            assert not [name for name in names if await rows.find([name])]

    asyncio.run(main())
