"""A server on FastMCP with one of everything; runs in an environment with FastMCP alone.

`python fastmcp_server.py [PORT]`: over HTTP at a port, otherwise over standard input and output.
"""

from __future__ import annotations

import sys
from typing import Annotated

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel, EmailStr, Field

server = FastMCP("shop")


class Order(BaseModel):
    """An order, with what it costs."""

    item: str
    amount: Annotated[int, Field(ge=1, le=100)] = 1
    note: str | None = None


class Receipt(BaseModel):
    """What an order costs."""

    order: Order
    price: float


@server.tool(annotations={"readOnlyHint": True, "title": "Price of an order"})
def price(order: Order) -> Receipt:
    """Tell what an order costs."""
    return Receipt(order=order, price=order.amount * 2.5)


@server.tool
def count(items: list[str]) -> int:
    """Count items; the result is no object."""
    return len(items)


@server.tool
def invite(address: EmailStr) -> str:
    """Invite somebody."""
    return f"invited {address}"


@server.tool
def sold_out() -> str:
    """Fail as tools do."""
    raise ToolError("there is none left")


@server.tool
async def deliver(context: Context) -> str:
    """Report progress, and log."""
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    await context.warning("the road is wet")
    return "delivered"


@server.tool
def sign(context: Context) -> str | types.InputRequiredResult:
    """Ask the client for a form, a text of its model and its folders, all at once."""
    answers = context.input_responses
    if answers is None:
        form = types.ElicitRequestFormParams(
            message="Who signs?",
            requested_schema={"type": "object", "properties": {"name": {"type": "string"}}},
        )
        said = types.TextContent(type="text", text="Where?")
        message = types.SamplingMessage(role="user", content=said)
        return types.InputRequiredResult(
            input_requests={
                "who": types.ElicitRequest(params=form),
                "where": types.CreateMessageRequest(
                    params=types.CreateMessageRequestParams(messages=[message], max_tokens=9)
                ),
                "folders": types.ListRootsRequest(),
            },
            request_state="asked once",
        )
    who, where, folders = answers["who"], answers["where"], answers["folders"]
    return f"{who.content['name']}, {where.content.text}, {folders.roots[0].uri}, {context.request_state}"


@server.resource("shop://opening-hours", mime_type="text/plain")
def opening_hours() -> str:
    """When it is open."""
    return "never on Sundays"


@server.resource("shop://logo", mime_type="image/png")
def logo() -> bytes:
    """A few bytes."""
    return b"\x89PNG\x00\xff"


@server.resource("shop://items/{name}/stock")
def stock(name: str) -> str:
    """How many there are."""
    return f"{name}: 7"


@server.prompt
def ask_for(item: str, politely: bool = True) -> str:
    """Ask for an item."""
    return f"{'Please, ' if politely else ''}I want {item}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(transport="stdio", show_banner=False)
