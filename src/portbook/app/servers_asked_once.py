"""Asks MCP servers of the settings once what they offer, for the commands that approve it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping

from portbook.app.assemble import official_schemas
from portbook.app.rules_from_settings import policy_of
from portbook.app.tools_from_settings import Collected
from portbook.net.destinations import Destinations
from portbook.pins.served_or_withheld import Standing
from portbook.protocol.message_validation import SchemaValidator
from portbook.schema.official_schemas import SchemaStore
from portbook.settings import Settings
from portbook.tools.catalog import Catalog
from portbook.upstreams.all_servers import Fleet
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream, read_mcp
from portbook.upstreams.trust_by_lock import Judgement, Trust, Withheld

__all__ = ["ask_servers", "declared_servers", "observe_servers"]

# What MCP servers offer now, for commands that list tools without serving them.


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


class _Listener:
    """Serves nothing, and remembers what was offered."""

    def __init__(self) -> None:
        self.offers: dict[str, Offer] = {}

    def known(self, declared: DeclaredUpstream) -> Offer | None:
        return None

    def judge(self, declared: DeclaredUpstream, offer: Offer) -> Judgement:
        self.offers[declared.alias] = offer
        return Judgement(())

    def has_changed(self) -> bool:
        return False


def declared_servers(settings: Settings) -> tuple[DeclaredUpstream, ...]:
    """Return the servers of the settings. Raises `BadSettings` for a mistake in them."""
    return read_mcp(settings.mcp_tables, settings.folder, settings.complain, settings.position_of)


async def ask_servers(
    settings: Settings, declared: Iterable[DeclaredUpstream], environ: Mapping[str, str]
) -> dict[str, Offer | str]:
    """Return what each server offers now, or why that could not be found out, by alias."""
    validator = SchemaValidator(official_schemas(settings)[0])
    validator.initialize()
    listener = _Listener()
    fleet = Fleet(
        declared,
        validator=validator,
        trust=listener,
        shelf=Catalog([]),
        environ=environ,
        patience_s=None,
    )
    destinations = policy_of(settings, ()).destinations
    if destinations is not None:
        fleet.permit(destinations)
    try:
        await fleet.settle()
        problems = fleet.problems()
    finally:
        await fleet.close()
    return {
        alias: listener.offers.get(alias) or problem or "it did not say in time what it offers"
        for alias, problem in problems.items()
    }
