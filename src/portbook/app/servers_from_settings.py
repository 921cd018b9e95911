"""The MCP servers that settings name, put together with what calls them and what serves their tools."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from portbook.app.rules_from_settings import learn_secrets
from portbook.app.tools_from_settings import Collected
from portbook.clock import Clock
from portbook.executors.dispatch import Dispatch
from portbook.executors.mcp_server_call import McpServerExecutor
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.model import JSONObject, Kind
from portbook.pipeline import Pipeline
from portbook.protocol.message_validation import SchemaValidator
from portbook.settings import Settings
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.upstream_status_and_offers import CONFIRMED_S, ObservationStore, UpstreamStore
from portbook.tools.toolset import Changed
from portbook.upstreams.all_servers import Fleet
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.transport import NotSent
from portbook.upstreams.trust_by_lock import Memory, PinnedTrust, Trust

if TYPE_CHECKING:
    from concurrent.futures import Future

    from portbook.stores.store_port import StorePort

__all__ = ["ServerReports", "dry_trust_of", "fleet_of", "trust_of"]

# Which definitions of MCP servers are served: by the lock beside the settings, with the store as memory.


def trust_of(settings: Settings, store: StorePort, clock: Clock, warn: Callable[[str], None]) -> PinnedTrust:
    """Return who decides. Raises `BadLock` where the lock cannot be used."""
    observations = ObservationStore(store, clock)

    def recall(server: str) -> Offer | None:
        try:
            found = observations.of(server)
        except StoreError:  # whoever needs the store for a call is told
            return None
        return None if found is None else Offer.of_data(server, found.definitions)

    def stored(done: Future[None]) -> None:
        if (error := done.exception()) is not None:
            warn(f"what MCP servers offer could not be stored, so reviews ask them again: {error}")

    def remember(offer: Offer) -> None:
        try:
            observations.remember(offer.server, offer.as_data()).add_done_callback(stored)
        except StoreError as error:
            warn(f"what MCP servers offer could not be stored, so reviews ask them again: {error}")

    return PinnedTrust(settings.folder, Memory(recall, remember), warn)


def dry_trust_of(settings: Settings) -> PinnedTrust:
    """Return who decides for a command that serves nothing: it writes neither the lock nor the store.

    Raises `BadLock` where the lock cannot be used.
    """

    def recall(_server: str) -> Offer | None:
        return None

    def remember(_offer: Offer) -> None:
        pass

    return PinnedTrust(settings.folder, Memory(recall, remember), lambda _: None, may_write=False)


def fleet_of(
    collected: Collected,
    executor: Dispatch,
    validator: SchemaValidator,
    changes: ChangeFeed,
    environ: Mapping[str, str],
    pipeline: Pipeline,
    trust: Trust,
    warn: Callable[[str], None],
) -> Fleet:
    """Return the MCP servers behind the boundary; `executor` calls them from now on."""

    def tell(text: str) -> None:
        redactor = pipeline.rules.redactor
        warn(text if redactor is None else redactor.redact_text(text))

    def publish(kind: Kind, uri: str | None) -> None:
        changes.publish(Changed(kind, uri))

    fleet = Fleet(
        collected.servers,
        validator=validator,
        trust=trust,
        shelf=collected.catalog,
        environ=environ,
        publish=publish,
        tell=tell,
        notice=lambda _: learn_secrets(pipeline, executor),
    )
    executor.servers = McpServerExecutor(fleet)
    return fleet


# Tells the store how the MCP servers of this process do, and restarts those that an operator names.


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
