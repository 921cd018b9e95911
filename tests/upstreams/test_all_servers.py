"""All servers together: what they offer is served, and one that fails changes nothing for the rest."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from portbook.pins.on_change import PinSettings
from portbook.tools.catalog import Catalog
from portbook.upstreams.all_servers import Fleet
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.trust_by_lock import Memory, PinnedTrust
from support.fake_upstream import validator
from support.mcp_peer import SMALL_SERVER


def fleet_of(
    folder: Path,
    catalog: Catalog,
    *servers: DeclaredUpstream,
    published: list[Any] | None = None,
    patience_s: float | None = 10.0,
) -> Fleet:
    told = [] if published is None else published
    memory = Memory(lambda _: None, lambda _: None)
    return Fleet(
        servers,
        validator=validator(),
        trust=PinnedTrust(folder, memory, lambda _: None),
        shelf=catalog,
        environ=os.environ,
        publish=lambda kind, uri: told.append((kind, uri)),
        patience_s=patience_s,
    )


def server(alias: str, *command: str) -> DeclaredUpstream:
    return DeclaredUpstream(
        alias,
        "stdio",
        command=command or (sys.executable, str(SMALL_SERVER)),
        pins=PinSettings("first-use"),
        folder=Path(),
        timeout_ms=5000,
    )


def test_after_settling_the_catalog_has_what_servers_offer(tmp_path: Path) -> None:
    async def main() -> None:
        catalog, published = Catalog([]), []
        fleet = fleet_of(
            tmp_path, catalog, server("a"), server("broken", "/no/such/program"), published=published
        )
        assert not fleet.is_settled
        await asyncio.gather(fleet.settle(), fleet.settle())
        assert fleet.is_settled
        assert catalog.find("a.echo") is not None
        assert fleet.problems()["a"] is None
        assert "No such file" in (fleet.problems()["broken"] or "")
        # One that failed is tried again, so that it may just be starting.
        assert [(each.alias, each.state == "ready") for each in fleet.statuses()] == [
            ("a", True),
            ("broken", False),
        ]
        assert published == []  # nobody has listed anything before
        await fleet.close()

    asyncio.run(main())


@pytest.mark.parametrize(("patience_s", "is_there"), [(0.0, False), (None, True)])
def test_a_list_waits_for_slow_servers_as_long_as_it_is_told(
    tmp_path: Path, patience_s: float | None, is_there: bool
) -> None:
    async def main() -> None:
        catalog = Catalog([])
        fleet = fleet_of(tmp_path, catalog, server("slow"), patience_s=patience_s)
        await fleet.settle()
        assert (catalog.find("slow.echo") is not None) is is_there
        await fleet.close()

    asyncio.run(main())


def test_without_servers_nothing_has_to_be_settled(tmp_path: Path) -> None:
    assert fleet_of(tmp_path, Catalog([])).is_settled
