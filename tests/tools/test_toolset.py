"""How functions are declared as tools: names, effects, and what a tool cannot have."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from portbook import Toolset
from portbook.tools.spec import BadTool, Effect, ToolSpec, require_slug
from portbook.tools.tool_names import canonical_name, is_slug


def one(text: str) -> str:
    """Say it again."""
    return text


def only(toolset: Toolset) -> ToolSpec:
    (spec,) = toolset.specs()
    return spec


def declared(**options: Any) -> ToolSpec:
    toolset = Toolset("label")
    toolset.tool(**options)(one)
    return only(toolset)


def test_the_decorator_works_without_parentheses() -> None:
    toolset = Toolset("label")

    @toolset.tool
    def echo(text: str) -> str:
        return text

    assert only(toolset).name == "echo"


def test_the_decorator_works_with_parentheses() -> None:
    toolset = Toolset("label")

    @toolset.tool()
    def echo(text: str) -> str:
        return text

    assert only(toolset).name == "echo"


def test_a_declared_function_stays_the_function_it_was() -> None:
    toolset = Toolset("label")
    assert toolset.tool(one) is one
    assert toolset.tool(name="again")(one) is one
    assert one("a") == "a"


def test_the_label_is_kept_and_prefixes_nothing() -> None:
    toolset = Toolset("Orders & more")
    toolset.tool(one)
    assert toolset.label == "Orders & more"
    assert (only(toolset).name, only(toolset).identifier) == ("one", "mcp.tool:one")


def test_a_tool_may_have_another_name_than_its_function() -> None:
    assert declared(name="orders.get").name == "orders.get"


def test_tools_keep_the_order_of_their_declaration() -> None:
    toolset = Toolset("label")
    for name in ("c", "a", "b"):
        toolset.tool(name=name)(one)
    assert [spec.name for spec in toolset.specs()] == ["c", "a", "b"]


def test_a_toolset_without_tools_is_empty() -> None:
    assert Toolset("label").specs() == []


def test_without_anything_said_a_tool_writes_and_takes_its_docstring() -> None:
    spec = declared()
    assert (spec.effect, spec.description) == (Effect.WRITE, "Say it again.")
    assert (spec.is_async, spec.is_inline, spec.timeout_ms) == (False, False, None)


@pytest.mark.parametrize("effect", list(Effect))
def test_a_tool_has_the_effect_that_it_declares(effect: Effect) -> None:
    assert declared(effect=effect.value).effect is effect


def test_a_tool_has_the_description_deadline_and_place_that_it_declares() -> None:
    spec = declared(description="Another.", timeout_ms=1, inline=True)
    assert (spec.description, spec.timeout_ms, spec.is_inline) == ("Another.", 1, True)


def test_a_function_without_a_docstring_has_no_description() -> None:
    toolset = Toolset("label")
    toolset.tool(name="bare")(lambda: 1)
    assert only(toolset).description == ""


def test_a_docstring_loses_its_indentation() -> None:
    def tool() -> None:
        """Say one thing.

        And another.
        """

    toolset = Toolset("label")
    toolset.tool(tool)
    assert only(toolset).description == "Say one thing.\n\nAnd another."


GOOD_NAMES = ["a", "0", "_", ".", "orders.get_order", "a" * 128, "9lives", "a..b"]
BAD_NAMES = [
    "", "a b", "a/b", "mcp.tool:a", "a\n", "\na", "é", "\uff41", "\u0663", "a" * 129,
    "a\x00b",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_name_of_the_contract_is_taken(name: str) -> None:
    assert is_slug(name)
    assert require_slug(name) == name
    assert declared(name=name).name == name


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_no_tool_can_have_is_refused_with_advice(name: str) -> None:
    assert not is_slug(name)
    advice = r"use 1 to 128 of A-Z, a-z, 0-9, '_', '-' and '\.'; set a different one with"
    with pytest.raises(BadTool, match=advice):
        Toolset("label").tool(name=name)(one)


def test_a_name_with_capitals_or_hyphens_is_kept_beside_the_canonical_one() -> None:
    def getOrder() -> None:  # noqa: N802 - the name is the point
        pass

    toolset = Toolset("label")
    toolset.tool(getOrder)
    spec = only(toolset)
    assert (spec.name, spec.declared) == (canonical_name("getOrder"), "getOrder")
    assert declared(name="get-order").name == canonical_name("get-order")
    toolset.disable("getOrder")
    assert not only(toolset).is_on


def test_a_function_whose_own_name_cannot_be_a_tools_is_refused_when_it_is_declared() -> None:
    with pytest.raises(BadTool, match="tool name '<lambda>'"):
        Toolset("label").tool(lambda: None)
    with pytest.raises(BadTool, match="tool name ''"):
        Toolset("label").tool(functools.partial(one))  # type: ignore[arg-type]


def test_a_name_is_taken_only_once_in_a_toolset() -> None:
    toolset = Toolset("label")
    toolset.tool(one)
    with pytest.raises(BadTool, match="tool 'one' is declared twice in this toolset; rename one with name="):
        toolset.tool(one)
    assert len(toolset.specs()) == 1


def test_two_toolsets_may_declare_the_same_function() -> None:
    for toolset in (Toolset("a"), Toolset("b")):
        toolset.tool(one)
        assert only(toolset).name == "one"


@pytest.mark.parametrize("effect", ["", "READ", "reads", "none"])
def test_an_unknown_effect_is_refused_with_those_that_are_known(effect: Any) -> None:
    with pytest.raises(BadTool, match="tool 'one': effect must be one of read, write, destructive"):
        declared(effect=effect)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_deadline_lies_in_the_future(timeout_ms: int) -> None:
    with pytest.raises(BadTool, match="tool 'one': timeout_ms must be above 0"):
        declared(timeout_ms=timeout_ms)


def test_a_coroutine_cannot_run_inline() -> None:
    async def later() -> None:
        pass

    toolset = Toolset("label")
    toolset.tool(inline=True)(later)
    with pytest.raises(BadTool, match="inline is for plain functions; drop it or drop async"):
        toolset.specs()


def test_declaring_looks_at_no_type_hints() -> None:
    def tool(order: Unwritten) -> None:  # type: ignore[name-defined] # noqa: F821 - not there on purpose
        pass

    toolset = Toolset("label")
    toolset.tool(tool)
    with pytest.raises(BadTool, match="name 'Unwritten' is not defined"):
        toolset.specs()


def test_a_name_without_its_keyword_is_refused_with_how_to_write_it() -> None:
    with pytest.raises(BadTool, match=r"@toolset\.tool\('my name'\): .* @toolset\.tool\(name="):
        Toolset("label").tool("my name")  # type: ignore[call-overload]
    with pytest.raises(BadTool, match=r"@toolset\.prompt\('my name'\): .* @toolset\.prompt\(name="):
        Toolset("label").prompt("my name")  # type: ignore[call-overload]


def test_a_resource_without_an_address_is_refused_with_how_to_write_it() -> None:
    with pytest.raises(BadTool, match=r"@toolset\.resource needs an address"):
        Toolset("label").resource(one)  # type: ignore[arg-type]
