"""The lock decides, and the store remembers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from portbook.app.servers_from_settings import ServerReports, dry_trust_of, trust_of
from portbook.clock import SystemClock
from portbook.pins.on_change import PinSettings
from portbook.settings import load_settings
from portbook.stores.sqlite_store import Store
from portbook.stores.upstream_status_and_offers import ObservationStore, UpstreamStore
from portbook.upstreams.listed_definitions import ObservedDefinition, Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.supervisor import ServerStatus
from support.pinned_folder import SEND, PinnedFolder

BOX = DeclaredUpstream("box", "stdio", ("box",), pins=PinSettings("first-use"))
OFFER = Offer(
    "box",
    (
        ObservedDefinition("box", "tool", "send", SEND),
        ObservedDefinition("box", "resource", "box://a", {"uri": "box://a", "name": "a"}),
    ),
)


def test_what_was_observed_is_stored_and_known_to_the_next_process(tmp_path: Path) -> None:
    settings = load_settings(PinnedFolder(tmp_path).settings, {}, {}, tmp_path)
    store, said = Store(tmp_path / "kept.db"), list[str]()
    trust = trust_of(settings, store, SystemClock(), said.append)
    assert len(trust.judge(BOX, OFFER).served) == 2
    store.close()
    store = Store(tmp_path / "kept.db")
    found = ObservationStore(store, SystemClock()).of("box")
    assert found is not None
    assert Offer.of_data("box", found.definitions) == OFFER
    known = trust_of(settings, store, SystemClock(), said.append).known(BOX)
    assert known is not None
    assert [each.name for each in known.definitions] == ["send", "box://a"]
    store.close()
    assert said == []


def test_a_store_that_cannot_be_used_is_told_of_and_stops_nothing(tmp_path: Path) -> None:
    settings = load_settings(PinnedFolder(tmp_path).settings, {}, {}, tmp_path)
    (tmp_path / "kept.db").mkdir()
    store, said = Store(tmp_path / "kept.db"), list[str]()
    trust = trust_of(settings, store, SystemClock(), said.append)
    assert len(trust.judge(BOX, OFFER).served) == 2
    assert trust.known(BOX) is not None
    store.close()
    assert len(said) == 1
    assert said[0].startswith("what MCP servers offer could not be stored, so reviews ask them again: ")


def test_a_command_that_serves_nothing_writes_nothing(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path)
    trust = dry_trust_of(load_settings(folder.settings, {}, {}, tmp_path))
    assert len(trust.judge(BOX, OFFER).served) == 2
    assert not folder.lock.exists()
    assert not (tmp_path / "portbook.db").exists()


class Servers:
    def __init__(self) -> None:
        self.restarted = asyncio.Event()

    def statuses(self) -> list[ServerStatus]:
        return [ServerStatus("git", "stdio", "ready", "2025-11-25", 3, 0, None, 0)]

    def __contains__(self, alias: str) -> bool:
        return alias == "git"

    async def restart(self, alias: str) -> None:
        self.restarted.set()


def test_servers_are_reported_restarted_and_forgotten_at_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        store, clock, servers = Store(tmp_path / "portbook.db"), SystemClock(), Servers()
        stored, warned = UpstreamStore(store, clock), list[str]()
        reports = ServerReports(cast("Any", servers), stored, clock, warned.append)
        reports.start()
        async with asyncio.timeout(10):
            while not stored.statuses():
                await asyncio.sleep(0.02)
            await stored.ask_restart("other")
            await stored.ask_restart("git")
            await servers.restarted.wait()
        await reports.close()
        assert (stored.statuses(), warned) == ([], [])
        store.close()

    asyncio.run(main())
