"""Which definitions of MCP servers are served: by the lock beside the settings, with the store as memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from portbook.clock import Clock
from portbook.settings import Settings
from portbook.stores.errors import StoreError
from portbook.stores.observations import ObservationStore
from portbook.upstreams.definitions import Offer
from portbook.upstreams.pinned_trust import Memory, PinnedTrust

if TYPE_CHECKING:
    from concurrent.futures import Future

    from portbook.stores.store_port import StorePort

__all__ = ["dry_trust_of", "trust_of"]


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
