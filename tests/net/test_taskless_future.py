"""A future whose waiter is stepped without a task, and that is any other future for a task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.net.taskless_waits import TasklessFuture


def made() -> TasklessFuture[str]:
    return TasklessFuture(loop=asyncio.get_running_loop())


def test_a_task_waits_for_it_as_for_any_other() -> None:
    async def main() -> None:
        future = made()
        asyncio.get_running_loop().call_soon(future.settle, "said")
        assert await future == "said"

    asyncio.run(main())


def test_what_is_settled_steps_at_once() -> None:
    async def main() -> None:
        future = made()
        stepped: list[str] = []
        future.take(lambda: stepped.append(future.result()))
        future.settle("said")
        assert stepped == ["said"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "given"), [("set_result", ["said"]), ("set_exception", [ValueError()]), ("cancel", [])]
)
def test_every_other_end_steps_in_the_next_turn(method: str, given: list[Any]) -> None:
    async def main() -> None:
        future = made()
        stepped: list[bool] = []
        future.take(lambda: stepped.append(future.done()))
        getattr(future, method)(*given)
        assert stepped == []
        await asyncio.sleep(0)
        assert stepped == [True]
        assert not future.cancel()  # it has ended, and steps once
        await asyncio.sleep(0)
        assert stepped == [True]
        if not future.cancelled():
            future.exception()

    asyncio.run(main())
