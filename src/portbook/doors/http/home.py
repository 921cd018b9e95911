"""`GET /`: a page that lists what is served and calls tools. One file, without external assets."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Final

from portbook.canonical import json_bytes
from portbook.doors.http.page import Page
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.response import Reply
from portbook.doors.http.router import Serve
from portbook.model import Kind
from portbook.tools.catalog import Catalog, Tool
from portbook.version import __version__

__all__ = ["home"]

# What MCP clients can use beside tools; the page lists it but does not call it.
_OFFERS: Final[tuple[tuple[Kind, str], ...]] = (("resource", "Resources"), ("prompt", "Prompts"))


def home(catalog: Catalog, needs_key: Callable[[], bool]) -> Serve:
    """Return what serves the page; while calls need a key, the page lists nothing."""
    page = Page("home.html")

    async def serve(_request: InboundRequest) -> Reply:
        return page.filled(_listed_nothing() if needs_key() else _listed(catalog))

    return serve


def _listed_nothing() -> dict[str, str]:
    return {
        "version": __version__,
        "count": "",
        "tools": "<p>Calls need a key here, so what is served is not listed.</p>",
        "offers": "",
        "known": "[]",
    }


def _listed(catalog: Catalog) -> dict[str, str]:
    tools = catalog.of("tool")
    known = json_bytes([{"name": tool.spec.name, "input": tool.spec.input_schema} for tool in tools])
    listed = "".join(
        f"<li><button type=button data-tool='{escape(tool.spec.name, quote=True)}'>{_described(tool)}"
        "</button></li>"
        for tool in tools
    )
    return {
        "version": __version__,
        "count": f"({len(tools)})",
        "tools": f"<ul>{listed}</ul>" if listed else "<p>No tools are served.</p>",
        "offers": "".join(_offered(title, catalog.of(kind)) for kind, title in _OFFERS),
        # Inside a script element, only "<" could close it.
        "known": known.decode().replace("<", "\\u003c"),
    }


def _offered(title: str, offers: list[Tool]) -> str:
    if not offers:
        return ""
    items = "".join(f"<li><div>{_described(offer)}</div></li>" for offer in offers)
    return f"<h2>{title} ({len(offers)})</h2><ul>{items}</ul>"


def _described(tool: Tool) -> str:
    spec = tool.spec
    effect = f" <i class='{spec.effect}'>{spec.effect}</i>" if spec.kind == "tool" else ""
    first_line = spec.description.partition("\n")[0]
    return f"<b>{escape(spec.name)}</b>{effect}<span>{escape(first_line)}</span>"
