"""`store_of`: the store that the settings name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from portbook.settings import Settings
from portbook.stores.sqlite import Store

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["store_of"]


def store_of(settings: Settings, *, draw: Callable[[int], bytes] = os.urandom) -> StorePort:
    """Return the store that `settings` name, which is opened on first use.

    `draw` returns random bytes for the key of a new store.
    """
    return Store(settings.store_path, draw=draw)
