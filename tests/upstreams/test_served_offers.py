"""What of an offer is put into the catalog, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from portbook.model import JSONObject, Kind
from portbook.pins.approved_definitions_in_lock import approve
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.tools.catalog import LeftOutEntry
from portbook.tools.spec import ToolSpec
from portbook.tools.upstream_entries import WithheldEntry
from portbook.upstreams import served_offers as module
from portbook.upstreams.listed_definitions import ObservedDefinition, Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.served_offers import ServedOffers
from portbook.upstreams.trust_by_lock import Memory, PinnedTrust

TOOL: dict[str, Any] = {
    "name": "copyAll",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
OTHER: dict[str, Any] = {**TOOL, "name": "list"}
WIDENED: dict[str, Any] = {**TOOL, "inputSchema": {"type": "object", "properties": {"a": {}}}}
BOX = DeclaredUpstream("box", "stdio", ("box",))


class Shop:
    """Served offers of one server, and everything that they did."""

    def __init__(self, folder: Path) -> None:
        self.specs: list[ToolSpec] = []
        self.withheld: list[WithheldEntry] = []
        self.left_out: tuple[LeftOutEntry, ...] = ()
        self.published: list[Kind] = []
        self.said: list[str] = []
        trust = PinnedTrust(folder, Memory(lambda _: None, lambda _: None), self.said.append)
        self.offers = ServedOffers(trust, self, self.published.append, self.said.append)

    def locate(self, uri: str) -> tuple[str, JSONObject] | None:
        raise NotImplementedError

    def server_of(self, resource: str) -> str | None:
        raise NotImplementedError

    def replace(self, source: str, specs: Iterable[ToolSpec], withheld: Iterable[WithheldEntry]) -> None:
        assert source == "box"
        self.specs, self.withheld = list(specs), list(withheld)

    async def take(self, *tools: dict[str, Any]) -> None:
        definitions = (ObservedDefinition("box", "tool", each["name"], each) for each in tools)
        await self.offers.take(BOX, Offer("box", tuple(definitions)))

    @property
    def names(self) -> list[str]:
        return [spec.declared for spec in self.specs]


def pinned(folder: Path, *tools: dict[str, Any]) -> None:
    approve(folder, {"box": ServerDefinitions.observed(tools)})


def test_a_changed_tool_is_withheld_under_each_of_its_names(tmp_path: Path) -> None:
    pinned(tmp_path, TOOL, OTHER)
    shop = Shop(tmp_path)
    asyncio.run(shop.take(WIDENED, OTHER))
    assert shop.names == ["box.list"]
    (entry,) = shop.withheld
    assert entry.name.startswith("box.copyall_")
    assert entry.other_names == {"box.copyAll", "box__copyAll"}
    assert entry.told == {"standing": "changed", "grades": "widened"}
    assert entry.recorded["server"] == "box"
    assert shop.offers.find("tool", entry.name) == (None, entry)
    assert (shop.offers.tools_of("box"), len(shop.offers.withheld_of("box"))) == (1, 1)
    assert shop.said == ["mcp.box: 1 definition is withheld; run `portbook review box`"]


def test_only_a_list_that_is_different_is_published(tmp_path: Path) -> None:
    pinned(tmp_path, TOOL, OTHER)
    shop = Shop(tmp_path)

    async def main() -> None:
        await shop.take(TOOL, OTHER)
        assert shop.published == []
        await shop.take({**TOOL}, OTHER)
        assert shop.published == []
        await shop.take({**TOOL, "description": "New"}, OTHER)
        assert shop.published == ["tool"]
        announced = frozenset({"notifications/prompts/list_changed"})
        await shop.offers.take(BOX, Offer("box"), announced)
        assert shop.published == ["tool", "tool", "prompt"]

    asyncio.run(main())
    assert shop.said == []


def test_before_a_start_the_lock_is_served_and_its_changes_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.0)
    shop = Shop(tmp_path)
    assert not shop.offers.put_known(BOX)
    pinned(tmp_path, TOOL)
    shop = Shop(tmp_path)
    assert shop.offers.put_known(BOX)
    assert shop.names == ["box.copyAll"]

    async def main() -> None:
        shop.offers.watch()
        for tools, names in (((OTHER,), ["box.list"]), ((), [])):
            pinned(tmp_path, *tools)
            while shop.names != names:
                await asyncio.sleep(0)
        pinned(tmp_path, OTHER)
        while shop.names != ["box.list"]:
            await asyncio.sleep(0)
        await shop.take({**OTHER, "annotations": {}})
        assert shop.names == []
        approve(tmp_path, {"box": ServerDefinitions.observed([{**OTHER, "annotations": {}}])})
        while shop.names != ["box.list"]:
            await asyncio.sleep(0)
        await shop.offers.close()

    asyncio.run(main())
    assert shop.withheld == []


def test_a_server_without_pins_is_told_of_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    async def main() -> None:
        await shop.take(TOOL)
        await shop.take(TOOL)

    asyncio.run(main())
    assert shop.said == ["mcp.box: nothing of it is approved yet; run `portbook pin box`"]


def test_a_changed_lock_judges_what_is_offered_when_its_turn_comes(tmp_path: Path) -> None:
    """An offer that came while another server was judged is not replaced by the one before it."""
    pinned(tmp_path, TOOL, OTHER)
    shop = Shop(tmp_path)

    async def main() -> None:
        await shop.take(TOOL, OTHER)
        again = asyncio.ensure_future(shop.offers._judge_again("box"))
        await shop.take(WIDENED, OTHER)
        await again
        assert shop.names == ["box.list"]
        await shop.offers._judge_again("box")
        assert shop.names == ["box.list"]

    asyncio.run(main())
