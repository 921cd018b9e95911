"""Entries of MCP servers: replaced as their lists change, and never served under a name that two claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portbook.model import JSONObject, Kind
from portbook.tools.catalog import Catalog
from portbook.tools.spec import Effect, Switch, ToolSpec
from portbook.tools.upstream_entries import UpstreamEntry

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


def test_the_words_name_who_else_claims_the_name() -> None:
    catalog = Catalog([own("find")])
    catalog.replace("a", [spec("a.find", declared="find"), spec("a.one"), spec("a.one")])
    catalog.replace("b", [spec("b.x", declared="same"), spec("notes://x", kind="resource")])
    catalog.replace("c", [spec("c.x", declared="same"), spec("notes://x", kind="resource")])
    why = {(each.source, each.kind, each.name): each.why for each in catalog.left_out}
    assert why["a", "tool", "find"].startswith("your own tools have this name, and keep it; set prefix")
    assert why["a", "tool", "one"] == "the server has two entries of this name"
    assert why["b", "tool", "x"].startswith("mcp.c has the same name, so neither is served; set prefix")
    assert why["c", "resource", "notes://x"].startswith("mcp.b has the same name")


def resource(uri: str, server: str | None = "b", *, is_skill: bool = False) -> ToolSpec:
    """A resource of a server, or of the operator's own."""
    return replace(
        spec(uri, kind="resource"),
        upstream=None if server is None else UpstreamEntry(server, uri, {}),
        skill={"name": "s"} if is_skill else None,
    )


@pytest.mark.parametrize(
    "uri",
    [
        *("skill://mine/SKILL.md", "skill://mine/more.md", "skill://mine/deep/more.md"),
        *("skill://mine/{name}", "skill://{name}/SKILL.md", "skill:{+rest}", "skill://mi{rest}"),
    ],
)
@pytest.mark.parametrize("owner", [None, "a"])
def test_no_server_puts_a_file_into_the_folder_of_a_skill_of_others(owner: str | None, uri: str) -> None:
    skill, more = resource("skill://mine/SKILL.md", owner, is_skill=True), resource("skill://mine/x", owner)
    catalog = Catalog([] if owner else [skill, more])
    if owner:
        catalog.replace(owner, [skill, more])
    catalog.replace("b", [resource(uri), resource("skill://miner/x.md")])
    assert left_out(catalog)[-1] == ("b", uri)
    assert catalog.server_of("skill://miner/x.md") == "b"
    assert catalog.locate("skill://mine/x") == ("skill://mine/x", {})
    assert catalog.server_of("skill://mine/x") == owner


def test_an_address_of_the_operators_own_template_stays_theirs() -> None:
    catalog = Catalog([resource("notes://{page}", None)])
    catalog.replace("a", [resource("notes:{+any}", "a")])
    assert catalog.locate("notes://x") == ("notes://{page}", {"page": "x"})


def test_an_address_that_templates_of_two_servers_match_is_at_neither() -> None:
    catalog = Catalog([])
    catalog.replace("a", [resource("notes://{page}", "a"), resource("notes://{+page}.md", "a")])
    catalog.replace("b", [resource("notes://{+rest}"), resource("notes://exact")])
    assert catalog.locate("notes://x") is None
    assert catalog.locate("notes://x/y") == ("notes://{+rest}", {"rest": "x/y"})
    assert catalog.locate("notes://exact") == ("notes://exact", {})
    catalog.replace("b", [])
    assert catalog.locate("notes://x.md") == ("notes://{+page}.md", {"page": "x"})


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
