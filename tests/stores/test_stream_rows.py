"""Streams in the store: their events, who reads them, and how one ends whose process is gone."""

from __future__ import annotations

import asyncio

import pytest

from portbook.stores.mailbox import DraftMail, Mailbox
from portbook.stores.sqlite_store import Store
from portbook.stores.stored_sessions import SessionStore, digest_of
from portbook.stores.stream_rows import OWN_STREAM, StreamChange, StreamRows
from portbook.testing.fixed_time import FixedClock

LISTENING = DraftMail("listening")


@pytest.fixture
def rows(store: Store, clock: FixedClock) -> StreamRows:
    return StreamRows(store, clock)


def change(
    *added: int, dropped: tuple[int, ...] = (), ends: bool = False, expires: bool = False
) -> StreamChange:
    messages = [(position, f'"{position}"') for position in added]
    return StreamChange("s", "x.1", messages, dropped, ends, expires)


async def read(rows: StreamRows, after: int = 0) -> tuple[list[int], bool] | None:
    found = await rows.after("s", "x.1", after)
    return None if found is None else ([position for position, _ in found.events], found.row.is_ended)


def test_events_are_read_after_a_position_until_the_end(rows: StreamRows) -> None:
    async def main() -> None:
        assert await read(rows) is None
        await rows.begin("s", "x.1", "node", "7")
        await rows.change([change(1, 2), change(3, dropped=(1,))])
        assert await read(rows) == ([2, 3], False)
        await rows.change([change(4, ends=True)])
        assert await read(rows, 2) == ([3, 4], True)
        await rows.change([change(5)])  # it has ended
        assert await read(rows, 3) == ([4], True)
        await rows.change([change(expires=True)])
        assert await read(rows) is None

    asyncio.run(main())


def test_a_stream_is_ended_once_whoever_is_first(rows: StreamRows) -> None:
    async def main() -> None:
        await rows.begin("s", "x.1", "node", "7")
        await rows.change([change(1, 2)])
        await rows.end("s", "x.1", "lost", 5)  # its client has read more than was stored
        await rows.end("s", "x.1", "lost again", 5)
        await rows.change([change(3, ends=True)])  # its node lives after all
        found = await rows.after("s", "x.1", 2)
        assert found is not None
        assert found.events == [(6, "lost")]

    asyncio.run(main())


def test_the_latest_reader_of_an_own_stream_begins_where_the_one_before_was(rows: StreamRows) -> None:
    async def main() -> None:
        await rows.begin_own("s")
        first = await rows.open_own("s", "first", "a", LISTENING)
        assert first == (0, 0)
        second = await rows.open_own("s", "second", "b", LISTENING)
        assert second == (0, 1)
        rows.leave_own("s", "first", 7)  # it was replaced
        rows.leave_own("s", "second", 2)
        third = await rows.open_own("s", "third", "a", LISTENING)
        assert third == (2, 2)

    asyncio.run(main())


def test_a_stream_that_begins_now_has_nothing_of_what_was_told_before(rows: StreamRows, store: Store) -> None:
    Mailbox(store, FixedClock()).post(DraftMail("change"), DraftMail("change")).result()

    async def main() -> None:
        await rows.begin_own("s")
        assert (await rows.open_own("s", "r", "a", LISTENING)).position == 2

    asyncio.run(main())


def test_old_streams_are_deleted_but_not_those_that_still_run(
    rows: StreamRows, store: Store, clock: FixedClock
) -> None:
    async def main() -> None:
        sessions = SessionStore(store, clock)
        await sessions.begin("live", "bound", {})
        for session in (digest_of("live"), "ended"):
            await rows.begin_own(session)
        for name in ("ended.1", "gone.1", "lives.1"):
            await rows.begin("s", name, name.split(".")[0], "1")
        await rows.change([StreamChange("s", "ended.1", [(1, "x")], (), True)])
        await rows.prune(["gone"])
        assert await rows.nodes() >= {"gone", "lives"}
        clock.advance(601)
        await rows.prune(["gone"])
        kept = [name for name in ("ended.1", "gone.1", "lives.1") if await rows.after("s", name, 0)]
        assert kept == ["lives.1"]
        own = [each for each in (digest_of("live"), "ended") if await rows.after(each, OWN_STREAM, 0)]
        assert own == [digest_of("live")]
        await sessions.forget("live")
        assert await rows.after(digest_of("live"), OWN_STREAM, 0) is None

    asyncio.run(main())


def test_streams_that_run_long_keep_no_ended_one_from_being_deleted(
    rows: StreamRows, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.stores.stream_rows._PRUNED_AT_ONCE", 1)

    async def main() -> None:
        for name, node in (("x.0", "alive"), ("x.1", "alive"), ("x.2", "gone")):
            await rows.begin("s", name, node, "1")
            clock.advance(1)
        await rows.change([change(1, ends=True)])
        clock.advance(1000)
        await rows.prune(["gone", "gone long ago"])
        assert [await rows.after("s", name, 0) is not None for name in ("x.0", "x.1", "x.2")] == [
            True,
            False,
            False,
        ]

    asyncio.run(main())
