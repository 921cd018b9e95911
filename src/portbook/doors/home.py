"""`GET /`: a page that lists the tools and calls them. One file, no assets from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Final

from portbook.canonical import json_bytes
from portbook.doors.asgi import App, Receive, Scope, Send, respond
from portbook.tools.catalog import Catalog
from portbook.version import __version__

__all__ = ["home"]

# The page's own script and style, and this server alone to talk to.
_POLICY: Final = (
    b"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def home(catalog: Catalog, needs_key: Callable[[], bool]) -> App:
    """Return the application behind the page; while calls need a key, it does not list the tools."""
    pages = {needed: _page(catalog, needs_key=needed).encode() for needed in (False, True)}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", _POLICY),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        ]
        await respond(send, 200, headers, pages[needs_key()])

    return app


def _page(catalog: Catalog, *, needs_key: bool) -> str:
    if needs_key:
        tools = "<p>Calls need a key here, so the tools are not listed.</p>"
        known = b"[]"
    else:
        tools = "".join(
            f"<li><button type=button data-tool='{escape(tool.spec.name, quote=True)}'>"
            f"<b>{escape(tool.spec.name)}</b> <i class='{tool.spec.effect}'>{tool.spec.effect}</i>"
            f"<span>{escape(tool.spec.description.partition(chr(10))[0])}</span></button></li>"
            for tool in catalog
        )
        tools = f"<ul>{tools}</ul>" if tools else "<p>No tools are served.</p>"
        known = json_bytes([{"name": tool.spec.name, "input": tool.spec.input_schema} for tool in catalog])
    return (
        Path(__file__)
        .with_name("home.html")
        .read_text("utf-8")
        .replace("{{version}}", __version__)
        .replace("{{tools}}", tools)
        .replace("{{count}}", "" if needs_key else f"({len(catalog)})")
        # Inside a script element only "<" could end it early.
        .replace("{{known}}", known.decode().replace("<", "\\u003c"))
    )
