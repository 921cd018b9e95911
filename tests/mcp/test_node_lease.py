"""The name of a node: held while it lives, and a new one where its time has run out."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

from portbook.mcp.node_mail_and_relay import NodeLease
from portbook.stores.sqlite_store import Store
from portbook.stores.store_port import StorePort
from support.mcp_http_client import run


class Expiring:
    """A store whose leases run out when a test says so."""

    def __init__(self) -> None:
        self.is_held = False
        self.confirmed: list[float] = []

    def owner(self, draw_name: Any) -> Expiring:
        self._draw = draw_name
        return self

    def hold(self) -> float:
        return 7.0

    def claim(self, connection: object) -> str:
        self.is_held = True
        return self._draw()

    def confirm(self, name: str, since: float) -> None:
        self.confirmed.append(since)

    def may_start(self, name: str) -> bool:
        return self.is_held

    def submit(self, work: Any) -> Future[str]:
        future: Future[str] = Future()
        future.set_result(work(None))
        return future


def test_a_lease_that_ran_out_is_followed_by_one_with_a_new_name() -> None:
    async def main() -> None:
        store = Expiring()
        lease = NodeLease(cast("StorePort", store), os.urandom)
        await lease.renew()
        first = lease.name
        await lease.renew()
        assert lease.name == first
        store.is_held = False
        await lease.renew()
        assert len(lease.name) == len(first) == 16
        assert lease.name != first
        assert store.confirmed == [7.0, 7.0]

    run(main())


def test_a_process_that_has_released_its_name_does_not_live(tmp_path: Path) -> None:
    async def main() -> None:
        stores = [Store(tmp_path / "portbook.db") for _ in range(2)]
        one, other = (NodeLease(store, os.urandom) for store in stores)
        for lease in (one, other):
            await lease.renew()
        assert await one.lives(other.name)
        stores[1].close()
        other.release()
        assert not await one.lives(other.name)
        stores[0].close()
        one.release()

    run(main())
