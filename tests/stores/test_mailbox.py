"""Messages between processes: in order, to whom they are for, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.stores.mailbox import CHANGE, NOTICE, DraftMail, Mailbox
from portbook.stores.sqlite_store import Store
from portbook.testing.fixed_time import FixedClock


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def mailbox(tmp_path: Path, clock: FixedClock) -> Iterator[Mailbox]:
    store = Store(tmp_path / "portbook.db")
    yield Mailbox(store, clock)
    store.close()


def kinds(mailbox: Mailbox, after: int, node: str | None) -> list[tuple[int, str]]:
    return [(mail.sequence, mail.kind) for mail in asyncio.run(mailbox.after(after, node))]


def test_a_node_gets_what_is_for_it_and_for_all_in_order(mailbox: Mailbox) -> None:
    mailbox.post(DraftMail("one", node="a"), DraftMail("two"), DraftMail("three", node="b")).result()
    mailbox.post(DraftMail("four", node="a")).result()
    assert kinds(mailbox, 0, "a") == [(1, "one"), (2, "two"), (4, "four")]
    assert kinds(mailbox, 2, "a") == [(4, "four")]
    assert kinds(mailbox, 0, None) == [(2, "two")]
    assert asyncio.run(mailbox.last()) == 4


def test_what_a_node_has_taken_is_gone_and_what_all_were_told_stays(mailbox: Mailbox) -> None:
    mailbox.post(DraftMail("one", node="a"), DraftMail("two"), DraftMail("three", node="b")).result()
    mailbox.take("a", 3)
    mailbox.post(DraftMail("four", node="a")).result()  # numbers are not used again
    assert kinds(mailbox, 0, "a") == [(2, "two"), (4, "four")]
    assert kinds(mailbox, 0, "b") == [(2, "two"), (3, "three")]


def test_old_messages_are_deleted_whoever_they_were_for(mailbox: Mailbox, clock: FixedClock) -> None:
    mailbox.post(DraftMail("one", node="gone"), DraftMail("two")).result()
    clock.advance(601)
    mailbox.post(DraftMail("three")).result()
    asyncio.run(mailbox.prune())
    assert kinds(mailbox, 0, "gone") == [(3, "three")]


def test_the_newest_messages_are_kept_and_no_more(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portbook.stores.mailbox._MAX_KEPT", 2)
    mailbox.post(*(DraftMail(str(number)) for number in range(5))).result()
    asyncio.run(mailbox.prune())
    assert kinds(mailbox, 0, None) == [(4, "3"), (5, "4")]


def test_what_is_too_old_or_too_much_is_gone_at_once_however_many_there_are(
    mailbox: Mailbox, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.stores.mailbox._MAX_KEPT", 2)
    mailbox.post(*(DraftMail("answer") for _ in range(3_500))).result()
    asyncio.run(mailbox.prune())
    assert kinds(mailbox, 0, None) == [(3_499, "answer"), (3_500, "answer")]
    mailbox.post(*(DraftMail("answer", node="gone") for _ in range(3_500))).result()
    clock.advance(61)
    asyncio.run(mailbox.prune())
    assert kinds(mailbox, 0, "gone") == []


def test_what_nodes_say_in_passing_drives_nothing_out_that_streams_are_made_of(
    mailbox: Mailbox, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.stores.mailbox._MAX_KEPT", 2)
    mailbox.post(DraftMail(NOTICE), *(DraftMail("cancel") for _ in range(5))).result()
    asyncio.run(mailbox.prune())
    assert kinds(mailbox, 0, None) == [(1, NOTICE), (5, "cancel"), (6, "cancel")]
    clock.advance(61)
    asyncio.run(mailbox.prune())
    assert kinds(mailbox, 0, None) == [(1, NOTICE)]


def test_large_messages_go_before_small_ones_would(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portbook.stores.mailbox._MAX_CHARACTERS", 250)
    mailbox.post(*(DraftMail(CHANGE, "x" * 100) for _ in range(4)), DraftMail("other", "x" * 300)).result()
    asyncio.run(mailbox.prune())
    assert kinds(mailbox, 0, None) == [(3, CHANGE), (4, CHANGE)]
