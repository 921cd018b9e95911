"""The MCP servers of the settings with what is approved of them, for `portbook pin` and `portbook review`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from portbook.app.asked_servers import ask_servers, declared_servers
from portbook.app.pin_review import Offers, PinReview
from portbook.app.store_from_settings import store_of
from portbook.cli.options import settings_from
from portbook.cli.output_and_errors import fail, say
from portbook.clock import SystemClock
from portbook.pins.approved_definitions_in_lock import PinLock
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.settings import Settings
from portbook.stores.store_port import StorePort
from portbook.stores.upstream_status_and_offers import ObservationStore
from portbook.text.did_you_mean import did_you_mean
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.trust import pinned_part

__all__ = ["PinnedServers", "open_servers", "opened_store"]


@dataclass(frozen=True, slots=True)
class PinnedServers:
    """The servers that a command is about."""

    settings: Settings
    declared: Mapping[str, DeclaredUpstream]
    """All servers of the settings."""
    names: tuple[str, ...]
    """Those that the command is about."""

    @property
    def folder(self) -> Path:
        """Return the folder of the lock."""
        return self.settings.folder

    @property
    def pins(self) -> PinLock:
        """Return what is approved now. Raises `BadLock` where the lock cannot be read."""
        return PinLock.read(self.folder)

    def review(self, offers: Offers) -> PinReview:
        """Return these offers beside what is approved now. Raises `BadLock` where the lock cannot be read."""
        return PinReview.of(self.folder, self.declared, offers)

    def ask(self, *names: str) -> dict[str, ServerDefinitions | str]:
        """Return what each server offers now, or why it could not be asked."""
        wanted = [self.declared[name] for name in names or self.names]
        answers = asyncio.run(ask_servers(self.settings, wanted, os.environ))
        for alias, offer in answers.items():
            for sentence in () if isinstance(offer, str) else offer.left_out:
                say(f"mcp.{alias}: {sentence}")
        # Where there is no file yet, nobody has seen anything older.
        if self.settings.store_url is not None or self.settings.store_path.exists():
            self._remember([offer for offer in answers.values() if isinstance(offer, Offer)])
        return {alias: self._pinned(alias, offer) for alias, offer in answers.items()}

    def _remember(self, offers: Iterable[Offer]) -> None:
        with opened_store(self.settings) as store:
            observations = ObservationStore(store, SystemClock())
            for offer in offers:
                observations.remember(offer.server, offer.as_data()).result()

    def _pinned(self, alias: str, offer: Offer | str) -> ServerDefinitions | str:
        return offer if isinstance(offer, str) else pinned_part(self.declared[alias], offer)


@contextmanager
def opened_store(settings: Settings) -> Generator[StorePort]:
    """Yield the store that the settings name, and close it."""
    store = store_of(settings)
    try:
        yield store
    finally:
        store.close()


def open_servers(config: Path | None, names: tuple[str, ...]) -> PinnedServers:
    """Return the servers of the settings; all of them, or those named.

    Raises `BadSettings` and `BadLock` for what cannot be used, `Exit` for a name that the settings lack.
    """
    settings = settings_from(config)
    declared = {each.alias: each for each in declared_servers(settings)}
    for name in names:
        if name not in declared:
            hint = did_you_mean(
                name, sorted(declared), f"the settings have {', '.join(sorted(declared)) or 'none'}"
            )
            raise fail(f"there is no MCP server {name!r} in the settings; {hint}")
    servers = PinnedServers(settings, declared, names or tuple(sorted(declared)))
    _ = servers.pins  # a lock that cannot be read is told before a server is started
    return servers
