"""A small shop: the tools that tests of `portbook.testing` call."""

from __future__ import annotations

from typing import Any

from portbook import Context, Form, Image, Roots, ToolError, Toolset

toolset = Toolset("shop")

LARGE_REFUNDS: dict[str, Any] = {
    "rules": [
        {
            "name": "large refunds need a person",
            "tools": ["refund"],
            "action": "ask",
            "where": {"/cents": {"minimum": 10_000}},
        },
        {"name": "nothing destructive", "effects": ["destructive"], "action": "deny"},
    ]
}

SIZE = {"properties": {"size": {"type": "string", "enum": ["S", "L"]}}, "required": ["size"]}


@toolset.tool(effect="write")
def refund(order: int, cents: int) -> dict[str, int]:
    """Give money back."""
    return {"refunded": cents}


@toolset.tool(effect="destructive")
def wipe() -> None:
    """Remove every order."""
    raise AssertionError("policy lets nobody run this")


@toolset.tool(effect="read")
def orders(customer: str) -> list[int]:
    """List orders."""
    return [len(customer), 5]


@toolset.tool(effect="read", inline=True)
def count():
    return "5"


@toolset.tool(effect="read")
def account() -> dict[str, str]:
    return {"password": "hunter2 hunter2", "name": "Ada"}


@toolset.tool(effect="read")
def stock(context: Context) -> int:
    context.progress(1, 2, "half of the shelves")
    context.log("debug", {"shelf": 1}, "shelves")
    context.warning("a shelf is empty")
    return 7


@toolset.tool(effect="read")
def broken() -> int:
    return {}["shelf"]


@toolset.tool(effect="read")
def closed() -> int:
    raise ToolError("The shop is closed.")


@toolset.tool(effect="read")
def liar() -> int:
    return "many"  # type: ignore[return-value]


@toolset.tool(effect="read")
def picture() -> Image:
    return Image(b"\x00", "image/png")


@toolset.tool(effect="read")
async def fit(context: Context) -> str:
    answered = await context.elicit("Which size?", SIZE)
    return f"{answered.action} {answered.content.get('size')}"


@toolset.tool(effect="read")
async def survey(context: Context) -> list[Any]:
    page = await context.open_page("Sign in.", "https://shop.example/sign-in")
    said = await context.sample("Name a colour.")
    both = await context.ask(
        again=Form("Again?", {"properties": {"again": {"type": "boolean"}}}), roots=Roots()
    )
    return [page.action, said.text, both["again"].action, both["roots"]]


@toolset.resource("shop://{shelf}")
def shelf(shelf: str) -> str:
    return f"shelf {shelf}"


@toolset.prompt
def greeting(name: str) -> str:
    return f"Greet {name}."
