"""The tools that are served: found by their exact name, each with its compiled contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portbook.schema.engine import validator_for
from portbook.tools.catalog import Catalog
from portbook.tools.spec import BadTool, Effect, ToolSpec
from portbook.tools.upstream_entries import UpstreamEntry, WithheldEntry


def a_spec(name: str = "echo", input_schema: Any = None, output_schema: Any = True) -> ToolSpec:
    return ToolSpec(
        name, "", input_schema or {"type": "object"}, output_schema, Effect.READ, lambda arguments: arguments
    )


def test_a_tool_is_found_with_its_compiled_contract() -> None:
    spec = a_spec(input_schema={"required": ["text"]}, output_schema={"type": "string"})
    tool = Catalog([spec]).find("echo")
    assert tool is not None
    assert tool.spec is spec
    assert tool.input is validator_for({"required": ["text"]})
    assert tool.output is validator_for({"type": "string"})


@pytest.mark.parametrize("name", ["", "Echo", "echo ", " echo", "ech", "echo.", "mcp.tool:echo", "other"])
def test_a_name_is_found_exactly_or_not_at_all(name: str) -> None:
    assert Catalog([a_spec("echo")]).find(name) is None


def test_an_empty_catalog_finds_nothing() -> None:
    catalog = Catalog([])
    assert (len(catalog), list(catalog), catalog.find("echo")) == (0, [], None)


def test_tools_are_listed_by_name() -> None:
    catalog = Catalog([a_spec(name) for name in ("b", "a.b", "_", "a")])
    assert [tool.spec.name for tool in catalog] == ["_", "a", "a.b", "b"]
    assert len(catalog) == 4


def test_a_name_is_served_only_once() -> None:
    with pytest.raises(BadTool, match="tool 'echo' is declared twice; rename one with"):
        Catalog([a_spec("echo"), a_spec("other"), a_spec("echo")])


def test_a_name_that_the_contract_does_not_allow_is_refused() -> None:
    with pytest.raises(BadTool, match="tool name 'Echo'"):
        Catalog([a_spec("Echo")])


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        pytest.param({"type": "banana"}, "/type: must be one of", id="no schema"),
        pytest.param({"$ref": "http://e.test/"}, r"/\$ref: refers to a different document", id="elsewhere"),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-07/schema#"}, r"/\$schema: must be", id="dialect"
        ),
        pytest.param({"items": {"pattern": "(?=a)"}}, "/items/pattern: not a pattern", id="a pattern"),
        pytest.param({"const": float("nan")}, r"\(root\): the value has", id="not JSON"),
    ],
)
def test_a_schema_that_does_not_compile_names_the_tool_and_the_place(
    side: str, schema: Any, said: str
) -> None:
    with pytest.raises(BadTool, match=f"^tool 'echo', {side} schema: {said}"):
        Catalog([a_spec(**{f"{side}_schema": schema})])


DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}


def test_a_tool_of_an_mcp_server_may_have_schemas_of_draft_07() -> None:
    pair = {"items": [{"type": "string"}], "additionalItems": False}
    takes_pair: Any = {**DRAFT_07, "properties": {"pair": pair}}
    catalog = Catalog([])
    entry = UpstreamEntry("db", "list", {})
    catalog.replace("db", [replace(a_spec("db.list", takes_pair, DRAFT_07), upstream=entry)])
    assert catalog.left_out == ()
    tool = catalog.find("db.list")
    assert tool is not None
    assert tool.input.is_valid({"pair": ["a"]})
    assert not tool.input.is_valid({"pair": ["a", "b"]})  # 2020-12 has no additionalItems
    assert not tool.output.is_valid([])


def test_a_withheld_entry_is_not_served_and_is_known_by_every_name_of_it() -> None:
    catalog = Catalog([a_spec("echo")])
    tool = WithheldEntry("tool", "db.drop", frozenset({"db__drop", "db.Drop"}), {"a": 1}, {"b": 2})
    prompt = WithheldEntry("prompt", "db__ask", frozenset(), {}, {})
    catalog.replace("db", [a_spec("db.list")], [tool, prompt])
    assert [each.spec.name for each in catalog] == ["db.list", "echo"]
    assert catalog.find("db.drop") is None
    assert "db.drop" not in catalog.by_any_name
    assert catalog.canonical_name("db__drop") == catalog.canonical_name("db.Drop") == "db.drop"
    assert catalog.canonical_name("db__ask") is None
    assert catalog.withheld_as("db.drop", "tool") is tool
    assert catalog.withheld_as("db.drop", "prompt") is None
    assert catalog.withheld_as("db__ask", "prompt") is prompt
    assert list(catalog.withheld()) == [tool, prompt]
    catalog.replace("other", [a_spec("other.list")])
    assert list(catalog.withheld()) == [tool, prompt]
    catalog.replace("db", [a_spec("db.drop")])
    assert list(catalog.withheld()) == []
    assert catalog.find("db.drop") is not None
