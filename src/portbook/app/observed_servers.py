"""What MCP servers offer now, for commands that list tools without serving them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from portbook.app.tools_from_settings import Collected
from portbook.net.destinations import Destinations
from portbook.pins.standing import Standing
from portbook.protocol.conformance import SchemaValidator
from portbook.schema.store import SchemaStore
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.trust import Trust, Withheld

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
    return failed + fleet.left_out() + _withheld(fleet.withheld()) + fleet.offers.left_out.sentences()


def _withheld(found: Iterable[Withheld]) -> list[str]:
    """Return a sentence for each server of which nothing is approved, and for each other definition."""
    by_server: dict[str, list[Withheld]] = {}
    for each in found:
        by_server.setdefault(each.observed.server, []).append(each)
    sentences: list[str] = []
    for server, withheld in by_server.items():
        pending = [each for each in withheld if each.verdict.standing is Standing.PENDING]
        if pending:
            sentences.append(f"mcp.{server}: {_count(pending)} not approved yet; run `portbook pin {server}`")
        sentences += [
            f"mcp.{server}: {each.observed.kind} {each.observed.name!r} is withheld: {_why(each)}"
            for each in withheld
            if each.verdict.standing is not Standing.PENDING
        ]
    return sentences


def _why(withheld: Withheld) -> str:
    if withheld.verdict.is_quarantined:
        return "it looks like an attack on the model; run `portbook scan`"
    return "it has changed; run `portbook review`"


def _count(pending: list[Withheld]) -> str:
    return "1 definition is" if len(pending) == 1 else f"{len(pending)} definitions are"
