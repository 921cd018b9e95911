"""Entries of MCP servers: replaced as their lists change, and never served under a name that two claim."""

from __future__ import annotations

import pytest

from portbook.model import JSONObject, Kind
from portbook.tools.catalog import Catalog
from portbook.tools.spec import Effect, Switch, ToolSpec
from portbook.tools.upstream_entry import UpstreamEntry

OBJECT: JSONObject = {"type": "object"}


def spec(
    name: str, *, declared: str | None = None, kind: Kind = "tool", schema: JSONObject = OBJECT
) -> ToolSpec:
    server, _, own = name.partition(".")
    return ToolSpec(
        name=name,
        description="",
        input_schema=schema,
        output_schema=True,
        effect=Effect.READ,
        upstream=UpstreamEntry(server, own or name, {"name": own}),
        kind=kind,
        switch=Switch(),
        declared_name=declared,
    )


def own(name: str) -> ToolSpec:
    return ToolSpec(name=name, description="", input_schema=OBJECT, output_schema=True, effect=Effect.READ)


def left_out(catalog: Catalog) -> list[tuple[str, str]]:
    return [(each.source, each.name) for each in catalog.left_out]


def test_what_a_server_offers_replaces_what_it_offered_before() -> None:
    catalog = Catalog([own("add")])
    catalog.replace("a", [spec("a.one"), spec("a.two")])
    before = catalog.find("a.one")
    assert before is not None
    catalog.replace("a", [spec("a.two"), spec("a.three")])
    assert [tool.spec.name for tool in catalog] == ["a.three", "a.two", "add"]
    assert not before.spec.is_on
    catalog.replace("a", [])
    assert [tool.spec.name for tool in catalog] == ["add"]


def test_of_two_servers_that_claim_a_name_neither_is_served_under_it() -> None:
    catalog = Catalog([])
    catalog.replace("a", [spec("a.find", declared="find"), spec("a.other", declared="other")])
    assert catalog.canonical_name("find") == "a.find"
    catalog.replace("b", [spec("b.find", declared="find")])
    assert [tool.spec.name for tool in catalog] == ["a.other"]
    assert catalog.canonical_name("find") is None
    assert left_out(catalog) == [("a", "find"), ("b", "find")]
    catalog.replace("a", [])
    assert catalog.canonical_name("find") == "b.find"


def test_no_server_takes_a_name_of_the_operators_own_tools() -> None:
    catalog = Catalog([own("find")])
    catalog.replace("a", [spec("a.find", declared="find")])
    assert catalog.canonical_name("find") == "find"
    assert left_out(catalog) == [("a", "find")]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (spec("a.bad", schema={"type": "nonsense"}), "input schema"),
        (spec("a.far", schema={"$ref": "https://example.com/schema"}), "input schema"),
        (spec("a://{x}{y}", kind="resource"), "literal"),
    ],
)
def test_an_entry_that_cannot_be_served_stops_no_other_one(entry: ToolSpec, why: str) -> None:
    catalog = Catalog([])
    catalog.replace("a", [entry, spec("a.good")])
    assert [tool.spec.name for tool in catalog] == ["a.good"]
    assert why in catalog.left_out[0].why


def test_a_kind_that_may_come_later_is_offered_from_the_start() -> None:
    assert Catalog([], expected=["prompt"]).has("prompt")
    assert not Catalog([]).has("prompt")
