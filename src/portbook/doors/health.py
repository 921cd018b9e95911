"""`GET /health`, `/livez`, `/readyz`: whether the boundary can do its work, and what keeps it from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qs

from portbook.canonical import json_bytes
from portbook.doors.asgi import App, Receive, Scope, Send, respond
from portbook.doors.requests import JSON_HEADERS
from portbook.model import JSONObject
from portbook.version import __version__

__all__ = ["Checks", "health", "livez"]

# Runs every check, those of the gateways too where it is asked to; a check's value is None where all is well.
Checks = Callable[[bool], Awaitable[Mapping[str, str | None]]]

# What a caller can do without: one API that cannot be reached does not take the others down.
_HARMLESS: Final = "gateway:"


def health(checks: Checks) -> App:
    """Return the application that tells of every check."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        deep = parse_qs(scope["query_string"].decode("latin-1")).get("deep") == ["1"]
        found = await checks(deep)
        is_well = all(problem is None or name.startswith(_HARMLESS) for name, problem in found.items())
        body: JSONObject = {
            "status": "ok" if is_well else "failed",
            "version": __version__,
            "checks": {
                name: {"status": "ok"} if problem is None else {"status": "failed", "problem": problem}
                for name, problem in found.items()
            },
        }
        await respond(send, 200 if is_well else 503, JSON_HEADERS, json_bytes(body))

    return app


async def livez(scope: Scope, receive: Receive, send: Send) -> None:
    """Tell that the process answers, and nothing more."""
    await respond(send, 200, JSON_HEADERS, json_bytes({"status": "ok", "version": __version__}))
