"""Asks MCP servers of the settings once what they offer, for the commands that approve it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from portbook.app.assemble import official_schemas
from portbook.app.rules_from_settings import policy_of
from portbook.protocol.conformance import SchemaValidator
from portbook.settings import Settings
from portbook.tools.catalog import Catalog
from portbook.upstreams.declared_upstream import DeclaredUpstream
from portbook.upstreams.definitions import Offer
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.mcp_table import read_mcp
from portbook.upstreams.trust import Judgement

__all__ = ["ask_servers", "declared_servers"]


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
