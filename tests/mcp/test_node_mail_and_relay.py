"""A node takes what it is told, in order, and misses nothing that is told while it looks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from portbook.clock import SystemClock
from portbook.mcp.node_mail_and_relay import CHANGE, Bell, Node, NodeLease
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.mailbox import DraftMail, Mail, Mailbox
from portbook.stores.sqlite_store import Store
from support.mcp_http_client import run


@asynccontextmanager
async def node_at(path: Path, warn: Callable[[str], None] = lambda _: None) -> AsyncIterator[Node]:
    store = Store(path)
    node = Node(NodeLease(store, os.urandom), Mailbox(store, SystemClock()), store.version, warn)
    node.start()
    while not node.store_bell.turn:
        await asyncio.sleep(0.001)
    try:
        yield node
    finally:
        await node.close()
        store.close()
        node.release()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.005)


def test_nodes_take_what_is_for_them_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with node_at(tmp_path / "db") as one, node_at(tmp_path / "db") as other:
            taken: dict[str, list[str]] = {"one": [], "other": []}

            def taking(name: str) -> Callable[[Mail], asyncio.Future[None]]:
                async def take(mail: Mail) -> None:
                    taken[name].append(mail.body)

                return take  # type: ignore[return-value]

            for name, node in (("one", one), ("other", other)):
                node.on("word", taking(name))
            for number in range(20):
                assert await one.tell(DraftMail("word", str(number), node=other.name if number % 2 else ""))
            await until(lambda: len(taken["other"]) == 20)
            assert taken["other"] == [str(number) for number in range(20)]
            await until(lambda: len(taken["one"]) == 10)
            assert taken["one"] == [str(number) for number in range(0, 20, 2)]

    run(main())


def test_one_message_that_cannot_be_used_keeps_no_other_away(tmp_path: Path) -> None:
    async def main() -> None:
        warnings: list[str] = []
        async with node_at(tmp_path / "db", warnings.append) as node:
            taken: list[str] = []

            async def take(mail: Mail) -> None:
                taken.append(mail.body)
                assert mail.body != "bad"

            node.on("word", take)
            await node.tell(DraftMail("word", "bad"), DraftMail("word", "good"))
            await until(lambda: taken == ["bad", "good"])
        assert warnings == ["a message of a different process could not be used: AssertionError"]

    run(main())


def test_what_all_were_told_is_read_again_from_memory_and_before_that_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.mcp.node_mail_and_relay._RECENT", 2)

    async def main() -> None:
        async with node_at(tmp_path / "db") as node:
            for number in range(1, 6):
                await node.tell(DraftMail(CHANGE, str(number)))
            await until(lambda: node.at == 5)
            for after in range(6):
                told = await node.told_all(after)
                assert [mail.sequence for mail in told] == list(range(after + 1, 6))

    run(main())


def test_what_could_not_be_read_is_read_again_though_nothing_else_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.mcp.node_mail_and_relay._LOOK_S", 0.01)

    async def main() -> None:
        async with node_at(tmp_path / "db") as node:
            taken: list[str] = []
            failures = [StoreError("away"), StoreError("away")]
            after = Mailbox.after

            async def take(mail: Mail) -> None:
                taken.append(mail.body)

            async def failing(mailbox: Mailbox, sequence: int, name: str | None) -> list[Mail]:
                if failures:
                    raise failures.pop()
                return await after(mailbox, sequence, name)

            node.on("word", take)
            monkeypatch.setattr(Mailbox, "after", failing)
            await node.tell(DraftMail("word", "once"))
            await until(lambda: taken == ["once"])
            assert not failures

    run(main())


def test_what_a_node_was_sent_that_is_gone_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.mcp.node_mail_and_relay._PRUNED_EVERY_S", 0.0)

    async def main() -> None:
        async with node_at(tmp_path / "db") as node:
            store = Store(tmp_path / "db")
            await node.tell(DraftMail("answer", "a secret", node="0" * 16), DraftMail(CHANGE, "for all"))

            def bodies() -> list[object]:
                return store.read(lambda it: [row[0] for row in it.execute("SELECT body FROM mail")], [])

            await until(lambda: bodies() == ["for all"])
            store.close()

    run(main())


def test_a_node_knows_which_others_live(tmp_path: Path) -> None:
    async def main() -> None:
        async with node_at(tmp_path / "db") as one:
            async with node_at(tmp_path / "db") as other:
                assert one.name != other.name
                assert await one.lives(other.name)
                assert await other.lives(one.name)
            assert not await one.lives(other.name)
            assert not await one.lives("0" * 16)

    run(main())


def test_a_bell_that_rings_before_the_wait_is_not_missed() -> None:
    async def main() -> None:
        bell = Bell()
        turn = bell.turn
        bell.ring()
        assert await bell.wait(turn, 30)
        assert not await bell.wait(bell.turn, 0.001)
        waiting = [asyncio.create_task(bell.wait(bell.turn, 30)) for _ in range(3)]
        await asyncio.sleep(0)
        bell.ring()
        assert await asyncio.gather(*waiting) == [True] * 3

    run(main())
