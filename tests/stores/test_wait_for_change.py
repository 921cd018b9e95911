"""Waiting for a change: one timer for all who wait, and none where nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.store_port import Version
from portbook.stores.wait_for_change import StoreWatch

LONG_S = 60.0


class Versions:
    """A version to set, which counts how often it is asked for."""

    def __init__(self) -> None:
        self.current: Version = (1, 1)
        self.is_broken = False
        self.asked = 0
        self._asked: list[tuple[int, asyncio.Event]] = []

    def __call__(self) -> Version:
        self.asked += 1
        for count, event in self._asked:
            if self.asked >= count:
                event.set()
        if self.is_broken:
            raise StoreError("gone")
        return self.current

    async def after(self, count: int) -> None:
        """Return once it has been asked so often."""
        event = asyncio.Event()
        self._asked.append((count, event))
        await event.wait()


def run(scenario: Callable[[StoreWatch, Versions], Coroutine[Any, Any, None]]) -> None:
    versions = Versions()
    asyncio.run(scenario(StoreWatch(versions, poll_s=0.001), versions))


def test_who_waits_is_woken_by_a_change_and_not_before() -> None:
    async def scenario(changes: StoreWatch, versions: Versions) -> None:
        waiter = asyncio.create_task(changes.since((1, 1), LONG_S))
        await versions.after(3)
        assert not waiter.done()
        versions.current = (1, 2)
        await waiter

    run(scenario)


def test_who_comes_after_the_change_does_not_wait_for_the_next() -> None:
    async def scenario(changes: StoreWatch, versions: Versions) -> None:
        versions.current = (2, 1)
        await changes.since((1, 1), LONG_S)

    run(scenario)


def test_a_wait_ends_with_its_time() -> None:
    async def scenario(changes: StoreWatch, versions: Versions) -> None:
        await changes.since(versions.current, 0.001)

    run(scenario)


def test_what_cannot_be_told_wakes_too() -> None:
    async def scenario(changes: StoreWatch, versions: Versions) -> None:
        versions.is_broken = True
        await changes.since((1, 1), LONG_S)

    run(scenario)


def test_one_question_serves_all_who_wait() -> None:
    async def scenario(changes: StoreWatch, versions: Versions) -> None:
        waiters = [asyncio.create_task(changes.since((1, 1), LONG_S)) for _ in range(100)]
        await versions.after(1)
        versions.current = (1, 2)
        await asyncio.gather(*waiters)
        assert versions.asked == 2

    run(scenario)


def test_only_those_are_woken_for_whom_it_is_a_change() -> None:
    async def scenario(changes: StoreWatch, versions: Versions) -> None:
        early = asyncio.create_task(changes.since((1, 1), LONG_S))
        late = asyncio.create_task(changes.since((1, 2), LONG_S))
        await asyncio.sleep(0)
        versions.current = (1, 2)
        await early
        await versions.after(versions.asked + 2)
        assert not late.done()
        versions.current = (1, 3)
        await late

    run(scenario)


@pytest.mark.parametrize("end", ["changed", "cancelled", "time over"])
def test_nobody_asks_when_nobody_waits(end: str) -> None:
    async def scenario(changes: StoreWatch, versions: Versions) -> None:
        waiter = asyncio.create_task(changes.since((1, 1), 0.001 if end == "time over" else LONG_S))
        await asyncio.sleep(0)
        assert changes._timer is not None
        if end == "changed":
            versions.current = (1, 2)
        if end == "cancelled":
            waiter.cancel()
        await asyncio.wait([waiter])
        assert waiter.cancelled() == (end == "cancelled")
        assert changes._timer is None
        versions.current = (9, 9)
        await changes.since((1, 1), LONG_S)  # and it can be waited for again

    run(scenario)
