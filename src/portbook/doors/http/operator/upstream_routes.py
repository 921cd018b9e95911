"""`/operator/upstreams`: how the MCP servers are doing, and the restart of one."""

from __future__ import annotations

from typing import Final

from portbook.app.running_app import App
from portbook.doors.http.operator.operator_route import command, question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Route, Serve
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject

__all__ = ["RESTART", "UPSTREAMS", "list_upstreams", "restart_upstream", "upstream_counts"]

UPSTREAMS: Final = "/operator/upstreams"

# The body of a restart.
RESTART: Final[JSONObject] = {
    "type": "object",
    "properties": {"action": {"const": "restart"}},
    "required": ["action"],
    "additionalProperties": False,
}


def list_upstreams(served: App) -> Serve:
    """Return what lists the MCP servers of this process."""

    async def answer(_request: InboundRequest) -> JSON:
        fleet, settings = served.servers, served.rules.settings
        if fleet is None or settings is None:
            return {"upstreams": []}
        rows: list[JSON] = []
        for status in fleet.statuses():
            withheld = fleet.offers.withheld_of(status.alias)
            error = status.last_error
            rows.append(
                {
                    **status.as_data(),
                    "quarantined": sum(each.verdict.is_quarantined for each in withheld),
                    # What a server wrote to its standard error may hold what it was given.
                    "last_error": None if error is None else served.boundary.without_secrets(error),
                    "place": settings.place_of("mcp", status.alias),
                }
            )
        return {"upstreams": rows}

    return question(served.boundary, UPSTREAMS, "upstreams.list", answer)


def upstream_counts(served: App) -> JSONObject:
    """Return how many MCP servers there are, have failed and were restarted, and how much is withheld."""
    statuses = [] if served.servers is None else served.servers.statuses()
    return {
        "servers": len(statuses),
        "ready": sum(each.state == "ready" for each in statuses),
        "failed": sum(each.state == "failed" for each in statuses),
        "restarts": sum(each.restarts for each in statuses),
        "withheld": sum(each.withheld for each in statuses),
    }


def restart_upstream(served: App) -> Route:
    """Return the route that restarts a server, in every process that runs it."""

    async def perform(_body: JSONObject, alias: str) -> JSON:
        if served.servers is None or alias not in served.servers:
            raise Refused(Reason.UPSTREAM_UNKNOWN)
        from portbook.stores.upstream_status_and_offers import (
            UpstreamStore,  # late: only where there is a server
        )

        await UpstreamStore(served.store, served.clock).ask_restart(alias)
        return {"restarting": alias}

    return command(
        served.boundary,
        UPSTREAMS,
        "upstreams.restart",
        RESTART,
        perform,
        decides="action",
        segment_is="server",
    )
