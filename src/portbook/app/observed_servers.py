"""What MCP servers offer now, for commands that list tools without serving them."""

from __future__ import annotations

import asyncio
import os

from portbook.app.tools_from_settings import Collected
from portbook.net.destinations import Destinations
from portbook.protocol.conformance import SchemaValidator
from portbook.schema.store import SchemaStore
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.trust import FirstUse

__all__ = ["observe_servers"]


def observe_servers(collected: Collected) -> list[str]:
    """Start every server, add what it offers to the catalog, and end it; return what is not served."""
    return asyncio.run(_observe(collected))


async def _observe(collected: Collected) -> list[str]:
    validator = SchemaValidator(SchemaStore())
    validator.initialize()
    fleet = Fleet(
        collected.servers,
        validator=validator,
        trust=FirstUse(),
        shelf=collected.catalog,
        environ=os.environ,
    )
    fleet.permit(Destinations.of_base_urls([each.url for each in collected.servers if each.url], (), ()))
    try:
        await fleet.settle()
        failed = [f"mcp.{alias}: {why}" for alias, why in fleet.problems().items() if why is not None]
    finally:
        await fleet.close()
    left_out = [
        f"mcp.{each.source}: {each.kind} {each.name!r} is not served: {each.why}"
        for each in collected.catalog.left_out
    ]
    return failed + left_out
