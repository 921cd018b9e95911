"""What a server offers: every page of every list that it has, within limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.upstreams.listed_definitions import Offer, TooMany, observe
from support.fake_upstream import FakeLink, connected

SCHEMA = {"type": "object"}


class Lists(FakeLink):
    """Answers lists, page by page."""

    def __init__(self, pages: dict[str, list[dict[str, Any]]], *, is_endless: bool = False) -> None:
        super().__init__()
        self._pages = pages
        self._is_endless = is_endless

    def answer(self, message: dict[str, Any]) -> None:
        pages = self._pages.get(message["method"])
        if pages is None:
            self.say({"id": message["id"], "error": {"code": -32601, "message": "no"}})
            return
        at = int(message["params"].get("cursor", 0))
        has_more = self._is_endless or at + 1 < len(pages)
        more = {"nextCursor": str(at + 1)} if has_more else {}
        self.say({"id": message["id"], "result": {**pages[min(at, len(pages) - 1)], **more}})


def seen(link: FakeLink, capabilities: dict[str, Any]) -> Offer:
    async def main() -> Offer:
        connection = await connected(link)
        connection.capabilities = capabilities
        return await observe("s", connection, 1.0)

    return asyncio.run(main())


def test_every_page_is_read_and_kept_as_it_was_sent() -> None:
    first, second = ({"name": name, "inputSchema": SCHEMA, "_meta": {"x": 1}} for name in "ab")
    offer = seen(Lists({"tools/list": [{"tools": [first]}, {"tools": [second]}]}), {"tools": {}})
    assert [each.definition for each in offer.of("tool")] == [first, second]
    assert [each.name for each in offer.definitions] == ["a", "b"]


def test_a_list_without_its_capability_is_not_asked_for() -> None:
    link = Lists({})
    assert seen(link, {"completions": {}}) == Offer("s", completes=True)
    assert link.sent == []


def test_resources_without_templates_are_still_resources() -> None:
    resources = [{"resources": [{"uri": "a://b", "name": "b"}]}]
    offer = seen(Lists({"resources/list": resources}), {"resources": {}})
    assert [each.name for each in offer.definitions] == ["a://b"]


def test_a_list_that_is_declared_and_does_not_exist_is_empty_and_told_of() -> None:
    tool = {"name": "a", "inputSchema": SCHEMA}
    offer = seen(Lists({"tools/list": [{"tools": [tool]}]}), {"tools": {}, "prompts": {}, "resources": {}})
    assert [each.name for each in offer.definitions] == ["a"]
    assert offer.left_out == (
        "it declares resources, and has no resources/list",
        "it declares prompts, and has no prompts/list",
    )


def test_one_page_that_is_too_long_is_given_up() -> None:
    page = {"tools": [{"name": f"t{at}", "inputSchema": SCHEMA} for at in range(5001)]}
    with pytest.raises(TooMany, match="more than 5000 entries"):
        seen(Lists({"tools/list": [page]}), {"tools": {}})


def test_a_list_without_an_end_is_given_up() -> None:
    with pytest.raises(TooMany):
        seen(Lists({"tools/list": [{"tools": []}]}, is_endless=True), {"tools": {}})
