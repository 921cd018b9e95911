"""An order desk: a plain function, an async one, and one that destroys something.

Plain functions run in worker threads and async ones on the event loop, so the orders have a lock.
"""

import asyncio
from datetime import date
from decimal import Decimal
from threading import Lock
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from portbook import Toolset

toolset = Toolset("orders")

OrderId = Annotated[str, Field(pattern=r"^A-[0-9]{4}$", description="An A, a dash and four digits.")]


class Order(BaseModel):
    """One order."""

    id: OrderId
    customer: str
    placed: date
    total: Decimal
    state: Literal["open", "shipped", "cancelled"]


_lock = Lock()
_orders = {
    order.id: order
    for order in (
        Order(id="A-1001", customer="Ada", placed=date(2026, 3, 1), total=Decimal("19.90"), state="open"),
        Order(id="A-1002", customer="Grace", placed=date(2026, 3, 2), total=Decimal("5.00"), state="shipped"),
        Order(id="A-1003", customer="Ada", placed=date(2026, 3, 4), total=Decimal("42.00"), state="open"),
    )
}


@toolset.tool(effect="read")
def get_order(order_id: OrderId) -> Order | None:
    """Return one order, or null where there is none of that number."""
    with _lock:
        return _orders.get(order_id)


@toolset.tool(effect="read", timeout_ms=2_000)
async def find_orders(customer: str, limit: Annotated[int, Field(ge=1, le=100)] = 10) -> list[Order]:
    """Return a customer's orders, oldest first."""
    await asyncio.sleep(0)  # where a real desk would wait for its database
    with _lock:
        found = [order for order in _orders.values() if order.customer == customer]
    return sorted(found, key=lambda order: order.placed)[:limit]


@toolset.tool(effect="destructive")
def cancel_order(order_id: OrderId) -> Order | None:
    """Cancel an open order and return it; null where there is nothing to cancel."""
    with _lock:
        order = _orders.get(order_id)
        if order is None or order.state != "open":
            return None
        _orders[order_id] = order.model_copy(update={"state": "cancelled"})
        return _orders[order_id]
