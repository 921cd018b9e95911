"""What processes say of their servers: believed while they confirm it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from portbook.stores.sqlite_store import Store
from portbook.stores.upstream_status_and_offers import UpstreamStore
from portbook.testing.fixed_time import FixedClock


def test_what_is_not_confirmed_is_no_longer_true(tmp_path: Path) -> None:
    store, clock = Store(tmp_path / "portbook.db"), FixedClock()
    servers = UpstreamStore(store, clock)
    asyncio.run(servers.report("one", [{"name": "b"}, {"name": "a"}]))
    assert [(each["name"], each["process"]) for each in servers.statuses()] == [("a", "one"), ("b", "one")]
    clock.advance(31)
    assert servers.statuses() == []
    store.close()


def test_a_restart_is_seen_by_those_that_started_before_it(tmp_path: Path) -> None:
    store, clock = Store(tmp_path / "portbook.db"), FixedClock()
    servers, started = UpstreamStore(store, clock), clock.now()
    clock.advance(1)
    asyncio.run(servers.ask_restart("git"))
    assert list(servers.restarts_since(started)) == ["git"]
    assert servers.restarts_since(clock.now()) == {}
    store.close()
