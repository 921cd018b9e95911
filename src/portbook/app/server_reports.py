"""Tells the store how the MCP servers of this process do, and restarts those that an operator names."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Final

from portbook.clock import Clock
from portbook.model import JSONObject
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.upstream_status_and_offers import CONFIRMED_S, UpstreamStore
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.transport import NotSent

__all__ = ["ServerReports"]

# How soon an operator sees a change, and a restart begins.
_LOOK_S: Final = 0.5


class ServerReports:
    """Runs for as long as the boundary serves."""

    def __init__(self, fleet: Fleet, store: UpstreamStore, clock: Clock, warn: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._store = store
        self._clock = clock
        self._warn = warn
        self._process = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._seen = clock.now()
        self._told: list[JSONObject] | None = None
        self._running: asyncio.Task[None] | None = None
        self._restarting: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to report. In the event loop."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Report nothing more, and that nothing is left."""
        if self._running is None:
            return
        self._running.cancel()
        await asyncio.wait((self._running, *self._restarting))
        with contextlib.suppress(StoreError):
            await self._store.report(self._process, ())

    async def _run(self) -> None:
        due = 0.0
        while True:
            try:
                statuses = [each.as_data() for each in self._fleet.statuses()]
                if statuses != self._told or self._clock.tick() >= due:
                    await self._store.report(self._process, statuses)
                    self._told, due = statuses, self._clock.tick() + CONFIRMED_S
                self._heed()
            except StoreError as error:
                self._warn(f"how the MCP servers are doing cannot be stored: {error}")
                return
            await asyncio.sleep(_LOOK_S)

    def _heed(self) -> None:
        for alias, asked_at in self._store.restarts_since(self._seen).items():
            self._seen = max(self._seen, asked_at)
            if alias in self._fleet:
                restarting = asyncio.get_running_loop().create_task(self._restart(alias))
                self._restarting.add(restarting)
                restarting.add_done_callback(self._restarting.discard)

    async def _restart(self, alias: str) -> None:
        with contextlib.suppress(NotSent):  # its status says why
            await self._fleet.restart(alias)
