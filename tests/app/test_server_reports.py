"""Reports to the store: how servers do, and which of them to restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from portbook.app.server_reports import ServerReports
from portbook.clock import SystemClock
from portbook.stores.sqlite_store import Store
from portbook.stores.upstream_status_and_offers import UpstreamStore
from portbook.upstreams.supervisor import ServerStatus


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
