"""A server whose lists have changed is asked again: once for many, one at a time, with pauses."""

from __future__ import annotations

import asyncio

import pytest

from portbook.upstreams import announced_changes as module
from portbook.upstreams.announced_changes import ChangedLists

TOOLS, PROMPTS = "notifications/tools/list_changed", "notifications/prompts/list_changed"


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COALESCE_S", 0.0)
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)


def test_many_notifications_are_one_question() -> None:
    async def main() -> None:
        asked: list[frozenset[str]] = []
        done = asyncio.Event()

        async def ask(announced: frozenset[str]) -> None:
            asked.append(announced)
            done.set()

        lists = ChangedLists(ask)
        for method in (TOOLS, PROMPTS, TOOLS):
            lists.announce(method)
        await asyncio.wait_for(done.wait(), 10)
        await lists.close()
        assert asked == [frozenset({TOOLS, PROMPTS})]

    asyncio.run(main())


def test_while_one_question_is_open_no_other_is_asked_and_one_follows() -> None:
    async def main() -> None:
        asked: list[frozenset[str]] = []
        begun, may_end = asyncio.Semaphore(0), asyncio.Semaphore(0)

        async def ask(announced: frozenset[str]) -> None:
            asked.append(announced)
            begun.release()
            await may_end.acquire()

        lists = ChangedLists(ask)
        lists.announce(TOOLS)
        await asyncio.wait_for(begun.acquire(), 10)
        for _ in range(1000):
            lists.announce(PROMPTS)
            await asyncio.sleep(0)
        assert len(asked) == 1
        may_end.release()
        await asyncio.wait_for(begun.acquire(), 10)
        assert asked == [frozenset({TOOLS}), frozenset({PROMPTS})]
        await lists.close()

    asyncio.run(main())


def test_after_the_first_question_there_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 3600.0)

    async def main() -> None:
        asked = 0
        done = asyncio.Event()

        async def ask(announced: frozenset[str]) -> None:
            nonlocal asked
            asked += 1
            done.set()

        lists = ChangedLists(ask)
        lists.announce(TOOLS)
        await asyncio.wait_for(done.wait(), 10)
        for _ in range(100):
            await asyncio.sleep(0)
            lists.announce(TOOLS)
        assert asked == 1
        await lists.close()

    asyncio.run(main())
