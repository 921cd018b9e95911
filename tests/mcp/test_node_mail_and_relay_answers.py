"""Which node asked what a client answers: the id of the question says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from portbook.mcp.node_mail_and_relay import Node, SessionRelay
from portbook.model import JSON
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.mailbox import DraftMail
from support.mcp_http_client import run

HERE, THERE = "0" * 16, "a" * 16


def relay(**node: object) -> SessionRelay:
    return SessionRelay(cast("Node", SimpleNamespace(name=HERE, **node)), "digest")


@pytest.mark.parametrize(
    ("identifier", "asker"),
    [
        (f"{THERE}.0123456789ab-1", THERE),
        (f"{HERE}.0123456789ab-1", None),
        ("0123456789ab-1", None),
        (f"{THERE}.0123456789ab-1x", None),
        (f"../{THERE}.0123456789ab-1", None),
        (7, None),
        (None, None),
    ],
)
def test_an_id_names_the_node_that_asked(identifier: JSON, asker: str | None) -> None:
    assert relay().asker_of({"id": identifier}) == asker


def test_an_answer_is_refused_where_the_store_is_away() -> None:
    async def away(_: str) -> bool:
        raise StoreError("away")

    async def main() -> None:
        assert not await relay(lives=away).answer(THERE, {"id": "x", "result": {}})

    run(main())


def test_a_client_says_only_so_much_to_other_nodes() -> None:
    told: list[DraftMail] = []
    now = [0.0]
    node = SimpleNamespace(name=HERE, post=told.append)
    session = SessionRelay(cast("Node", node), "digest", lambda: now[0])
    assert [session.cancel(str(number)) for number in range(100)] == [True] * 64 + [False] * 36
    assert len(told) == 64
    now[0] += 1
    assert [session.cancel(str(number)) for number in range(9)] == [True] * 4 + [False] * 5


def test_an_answer_beyond_that_is_not_handed_over() -> None:
    async def main() -> None:
        session = relay()
        while session._may_tell():  # pyright: ignore[reportPrivateUsage]
            pass
        assert not await session.answer(THERE, {"id": "x", "result": {}})

    run(main())
