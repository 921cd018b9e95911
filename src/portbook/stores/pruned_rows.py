"""Deletes rows that are no longer needed, so many at a time that other writers do not wait long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from portbook.stores.connection_and_clock import Connection

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["PRUNED_AT_ONCE", "in_turns", "prune_all", "prune_rows"]

# The most rows that one statement deletes. What is left goes with the next one.
PRUNED_AT_ONCE: Final = 1000


def prune_rows(
    connection: Connection,
    table: str,
    key: str,
    condition: str,
    values: tuple[object, ...],
    *,
    limit: int = PRUNED_AT_ONCE,
    kept: int = 0,
) -> int:
    """Delete some of the rows that a condition selects, but the first `kept` of them; return how many.

    `key` names the columns by which rows are told apart. The condition may end with an order.
    """
    deleted = connection.execute(
        f"DELETE FROM {table} WHERE ({key}) IN "  # noqa: S608 - names and conditions are constants
        f"(SELECT {key} FROM {table} WHERE {condition} LIMIT ? OFFSET ?) RETURNING 1",
        (*values, limit, kept),
    )
    return sum(1 for _ in deleted)


async def prune_all(
    store: StorePort, table: str, key: str, condition: str, values: tuple[object, ...]
) -> None:
    """Delete all rows that a condition selects, in turns; `prune_rows` has the rest.

    Raises `StoreError` where that cannot be written.
    """
    await in_turns(store, lambda connection: prune_rows(connection, table, key, condition, values))


async def in_turns(store: StorePort, prune: Callable[[Connection], int], limit: int = PRUNED_AT_ONCE) -> None:
    """Call `prune` in one transaction after the other, until it deletes fewer than `limit` rows.

    Other writers have their turn in between. Raises `StoreError` where that cannot be written.
    """
    while await asyncio.wrap_future(store.submit(prune)) >= limit:
        pass
