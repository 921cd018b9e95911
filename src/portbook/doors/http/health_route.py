"""`GET /health`, `/livez`, `/readyz`: whether the boundary works, and what fails if it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, Protocol
from urllib.parse import parse_qs

from portbook.app.health_checks import is_healthy
from portbook.canonical import json_bytes
from portbook.doors.http.request import InboundRequest, key_of
from portbook.doors.http.response import JSON_LINES, Reply, refusal
from portbook.doors.http.router import Serve
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.version import __version__

__all__ = ["FAILS_EVERYWHERE", "Checks", "Fellows", "health", "livez"]

# Runs every check, with True also those of the gateways; the value of a check that passed is None.
Checks = Callable[[bool], Awaitable[Mapping[str, str | None]]]

_NEEDS_KEY: Final = Refused(Reason.UNAUTHORIZED)

# What `/readyz` ignores where the store is a database: while that is away, no node has it, and a load
# balancer that asks them must not leave out all of them.
FAILS_EVERYWHERE: Final = ("store", "workers")


class Fellows(Protocol):
    """The workers that serve together with this one."""

    def problem(self) -> str | None:
        """Return which part of a different worker fails, None if none does."""
        ...

    def as_data(self) -> JSONObject:
        """Return how each worker is doing, as JSON."""
        ...


def health(
    checks: Checks,
    is_known: Callable[[str | None], bool],
    servers: Callable[[], list[JSON]] = list,
    workers: Fellows | None = None,
    ignored: Collection[str] = (),
) -> Serve:
    """Return what reports every check; only a caller with a key learns why one failed.

    Without a key, a request makes no calls to gateways, and is not told of the MCP servers. A worker that is
    being started again is told of, and takes nothing down: the others serve. Nor do the checks that are
    `ignored`.
    """

    async def serve(request: InboundRequest) -> Reply:
        deep = parse_qs(request.head.query.decode("latin-1")).get("deep") == ["1"]
        tells_why = is_known(key_of(request.head))
        if deep and not tells_why:
            return refusal(_NEEDS_KEY, b"www-authenticate: Bearer\r\n")
        found = {**await checks(deep)}
        if workers is not None:
            found["workers"] = workers.problem()
        is_well = is_healthy({name: problem for name, problem in found.items() if name not in ignored})
        body: JSONObject = {
            "status": "ok" if is_well else "failed",
            "version": __version__,
            "checks": {name: _told(problem, tells_why=tells_why) for name, problem in found.items()},
        }
        if workers is not None:
            body["workers"] = workers.as_data()
        if deep and (statuses := servers()):
            body["servers"] = statuses
        return Reply(200 if is_well else 503, JSON_LINES, json_bytes(body))

    return serve


def _told(problem: str | None, *, tells_why: bool) -> JSONObject:
    if problem is None:
        return {"status": "ok"}
    return {"status": "failed", "problem": problem} if tells_why else {"status": "failed"}


async def livez(_request: InboundRequest) -> Reply:
    """Report that the process answers."""
    return Reply(200, JSON_LINES, json_bytes({"status": "ok", "version": __version__}))
