"""What MCP servers offer now, for commands that list tools without serving them."""

from __future__ import annotations

import asyncio
import os

from portbook.app.tools_from_settings import Collected
from portbook.net.destinations import Destinations
from portbook.protocol.conformance import SchemaValidator
from portbook.schema.store import SchemaStore
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.trust import Trust

__all__ = ["observe_servers"]


def observe_servers(collected: Collected, trust: Trust) -> list[str]:
    """Add what servers offer to the catalog, as `trust` decides; return what is not served.

    A server that has to be asked is started, and ended.
    """
    return asyncio.run(_observe(collected, trust))


async def _observe(collected: Collected, trust: Trust) -> list[str]:
    validator = SchemaValidator(SchemaStore())
    validator.initialize()
    fleet = Fleet(
        collected.servers,
        validator=validator,
        trust=trust,
        shelf=collected.catalog,
        environ=os.environ,
        patience_s=None,
    )
    fleet.permit(Destinations.of_base_urls([each.url for each in collected.servers if each.url], (), ()))
    try:
        await fleet.settle()
        failed = [f"mcp.{alias}: {why}" for alias, why in fleet.problems().items() if why is not None]
    finally:
        await fleet.close()
    withheld = [
        f"mcp.{each.observed.server}: {each.observed.kind} {each.observed.name!r} is withheld: it is "
        f"{each.verdict.standing}; run `portbook review`"
        for each in fleet.withheld()
    ]
    return failed + withheld + fleet.offers.left_out.sentences()
