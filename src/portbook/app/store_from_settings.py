"""`store_of`: the store that the settings name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from portbook.settings import Settings
from portbook.stores.sqlite_store import Store

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["store_of"]

_SCHEMES: Final = ("postgresql://", "postgres://")


def store_of(settings: Settings, *, draw: Callable[[int], bytes] = os.urandom) -> StorePort:
    """Return the store that `settings` name, which is opened on first use.

    `draw` returns random bytes for the key of a new store.

    Raises `BadSettings` where there can be no such store.
    """
    if settings.store_url is None:
        return Store(settings.store_path, draw=draw)
    return _database_of(settings, draw)


def _database_of(settings: Settings, draw: Callable[[int], bytes]) -> StorePort:
    url, direct_url = settings.store_url or "", settings.store_direct_url
    for key, address in (("url", url), ("direct_url", direct_url)):
        if address is not None and not address.startswith(_SCHEMES):
            raise settings.complain(("store", key), "must begin with postgresql://")
    try:
        # Late: few need a database, and it is an extra.
        from portbook.stores.postgres.connection_address_and_errors import problem_of_address
        from portbook.stores.postgres.leases import lease_terms
        from portbook.stores.postgres.postgres_store import PostgresStore
    except ImportError:
        raise settings.complain(
            ("store", "url"), "needs psycopg: install portbook[postgres], or use [store] path"
        ) from None
    for key, address in (("url", url), ("direct_url", direct_url)):
        if address is not None and (problem := problem_of_address(address)) is not None:
            raise settings.complain(("store", key), problem)
    terms = lease_terms(settings.store_lease_s)
    return PostgresStore(url, direct_url=direct_url, draw=draw, lease_terms=terms)
