"""Streams of changes in 2026-07-28: acknowledged first, filtered, tagged, ended in an orderly way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from portbook.mcp.client_subscriptions import Subscription
from portbook.mcp.list_and_resource_changes import ChangeFeed, ChangeNotification
from portbook.mcp.report_queue import Outlet
from portbook.tools.toolset import Changed
from support.mcp_http_client import EVERYTHING, Client, Exchange, run, serving

TAG = "io.modelcontextprotocol/subscriptionId"
TRIGGERS = ("test_trigger_tool_change", "test_trigger_prompt_change", "touch_watched_resource")


async def listening(client: Client, **wanted: Any) -> Exchange:
    exchange = client.ask("subscriptions/listen", {"notifications": wanted}, id="sub-1")
    await exchange.until(lambda: bool(exchange.messages))
    return exchange


# What is asked for, what is agreed to, and what is heard when everything changes.
FILTERS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing": ({}, {}, []),
    "tools": (
        {"toolsListChanged": True},
        {"toolsListChanged": True},
        ["notifications/tools/list_changed"] * 2,
    ),
    "prompts": (
        {"promptsListChanged": True, "toolsListChanged": False},
        {"promptsListChanged": True},
        ["notifications/prompts/list_changed"] * 2,
    ),
    "a resource": (
        {"resourceSubscriptions": ["test://watched-resource", "test://no-such"]},
        {"resourceSubscriptions": ["test://watched-resource"]},
        ["notifications/resources/updated"],
    ),
}


@pytest.mark.covers("design.listen")
@pytest.mark.parametrize("case", FILTERS)
def test_what_was_asked_for_is_heard_and_nothing_else(tmp_path: Path, case: str) -> None:
    wanted, agreed, heard = FILTERS[case]

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            exchange = await listening(client, **wanted)
            for trigger in TRIGGERS:
                await client.result("tools/call", {"name": trigger})
            client.served.changes.close()
            await exchange.ended()
            acknowledged, *told, ending = exchange.messages
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"]["notifications"] == agreed
            assert [message["method"] for message in told] == heard
            assert {m["params"]["_meta"][TAG] for m in (acknowledged, *told)} == {"sub-1"}
            assert ending["id"] == "sub-1"
            assert ending["result"] == {"resultType": "complete", "_meta": {TAG: "sub-1"}}

    run(main())


def test_whoever_leaves_is_forgotten(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            exchange = await listening(client, toolsListChanged=True)
            await exchange.leave()
            await client.result("tools/call", {"name": "test_trigger_tool_change"})
            assert len(exchange.messages) == 1

    run(main())


def test_a_key_hears_of_its_own_resources_alone(tmp_path: Path) -> None:
    from portbook.stores.caller_keys import digest_of_key

    config = tmp_path / "portbook.toml"
    config.write_text(
        f'[[keys.allow]]\nname = "one"\nsha256 = "{digest_of_key("one")}"\ntools = ["test_*"]\n'
    )

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, config=config) as client:
            client.key = "one"
            await client.open("2026-07-28")
            exchange = await listening(client, resourceSubscriptions=["test://watched-resource"])
            assert exchange.messages[0]["params"]["notifications"] == {"resourceSubscriptions": []}
            await exchange.leave()

    run(main())


def test_a_stream_that_cannot_begin_leaves_nobody_behind() -> None:
    class Deaf:
        """What every part of a stream is made of here: it says what it is asked, and fails to begin."""

        revision = call = property(lambda self: self)
        identifier = b"1"
        params: ClassVar[Any] = {"notifications": {"toolsListChanged": True}}
        told: ClassVar[list[ChangeNotification]] = []

        def way_out(self) -> Outlet:
            return Outlet(lambda *_, **__: True)

        def notification(self, *_: object) -> bytes:
            raise ValueError("not today")

        def may_receive(self, uri: object = None) -> bool:
            self.told.append(cast("ChangeNotification", uri))
            return False

    async def main() -> None:
        changes, deaf = ChangeFeed(), cast("Any", Deaf())
        listening = Subscription(deaf, deaf, changes, cast("Any", None), deaf)
        with pytest.raises(ValueError, match="not today"):
            await listening.hold((), "somebody")
        changes.publish(Changed("tool"))
        await asyncio.sleep(0)
        assert deaf.told == []

    run(main())
