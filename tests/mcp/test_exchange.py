"""One MCP request: what is made for it only when a tool asks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

from portbook.mcp.exchange import ClientLink, McpExchange, McpParts
from portbook.mcp.questions_to_client import ClientRequests, LiveClient, RoundClient
from portbook.mcp.rounds_and_request_state import Carried
from portbook.model import JSONObject
from portbook.protocol.negotiation import Session
from portbook.protocol.revisions_and_methods import REVISIONS
from support.fake_world import a_call

TASKS: JSONObject = {
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
}


class Told:
    """A client's side of the wire."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def emit(self, message: bytes, is_wanted: Any, **_: Any) -> bool:
        if is_wanted():
            self.messages.append(message)
        return True


def made(
    told: Told, revision: str = "2025-11-25", meta: JSONObject | None = None, **call: Any
) -> McpExchange:
    parts = McpParts(cast("Any", None), cast("Any", None), cast("Any", None))
    link = ClientLink(Session(), ClientRequests(cast("Any", None), told.emit), told.emit)
    params: JSONObject = {"name": "echo"} if meta is None else {"name": "echo", "_meta": meta}
    return McpExchange(
        a_call(**call),
        parts,
        link,
        "tools/call",
        params,
        REVISIONS[revision],
        b"1",
        Carried(),
    )


@pytest.mark.parametrize(("revision", "kind"), [("2025-11-25", LiveClient), ("2026-07-28", RoundClient)])
def test_a_client_is_made_once_and_when_it_is_asked_for(revision: str, kind: type) -> None:
    async def main() -> None:
        exchange = made(Told(), revision)
        assert exchange.outlet is None
        client = exchange.client()
        assert isinstance(client, kind)
        assert exchange.client() is client
        assert exchange.outlet is not None

    asyncio.run(main())


def test_a_tool_in_a_thread_gets_a_client_too() -> None:
    async def main() -> None:
        exchange, found = made(Told()), list[object]()
        thread = threading.Thread(target=lambda: found.append(exchange.client()))
        thread.start()
        thread.join()
        assert found == [exchange.client()]

    asyncio.run(main())


def test_a_completion_reaches_no_client() -> None:
    async def main() -> None:
        assert made(Told(), kind="completion").client() is None

    asyncio.run(main())


def test_what_is_sent_after_the_end_is_dropped_even_if_the_way_is_made_then() -> None:
    async def main() -> None:
        told = Told()
        exchange = made(told)
        exchange.close()
        exchange.way_out().tell(b"too late")
        exchange.way_out().flush()
        await asyncio.sleep(0)
        assert told.messages == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("revision", "meta", "expected"),
    [("2026-07-28", TASKS, True), ("2026-07-28", {}, False), ("2025-11-25", TASKS, False)],
)
def test_a_call_may_detach_where_its_client_declares_tasks(
    revision: str, meta: JSONObject, expected: bool
) -> None:
    async def main() -> None:
        assert made(Told(), revision, meta).may_detach is expected

    asyncio.run(main())
