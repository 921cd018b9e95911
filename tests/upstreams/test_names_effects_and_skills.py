"""What servers offer as specs: names that clients can call, and effects that nobody can loosen."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.tools.spec import Effect, ToolSpec
from portbook.upstreams.listed_definitions import ObservedDefinition
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.names_effects_and_skills import specs_of

SCHEMA: dict[str, Any] = {"type": "object"}


def specs(
    kind: str, name: str, *, completes: bool = False, more: Any = None, **declared: Any
) -> list[ToolSpec]:
    definition = {"name": name, "inputSchema": SCHEMA, **(more or {})}
    upstream = DeclaredUpstream("git", "stdio", **declared)
    observed = ObservedDefinition("git", kind, name, definition)
    return list(specs_of(upstream, [observed], completes=completes))


@pytest.mark.parametrize(
    ("name", "canonical", "declared"),
    [
        ("find", "git.find", "git.find"),
        ("createIssue", "git.createissue_d5vvo7ay8e", "git.createIssue"),
        ("a b/c", "git.a_b_c_", "git.a_b_c_"),
    ],
)
def test_a_tool_has_a_canonical_name_and_one_that_clients_can_call(
    name: str, canonical: str, declared: str
) -> None:
    [spec] = specs("tool", name)
    assert spec.name.startswith(canonical[:-10] if "_" in canonical[-11:] else canonical)
    assert spec.declared.startswith(declared)
    assert spec.upstream is not None
    assert spec.upstream.name == name


def test_without_a_prefix_the_listed_name_is_its_own() -> None:
    [spec] = specs("tool", "find", has_prefix=False)
    assert (spec.name, spec.declared) == ("git.find", "find")


@pytest.mark.parametrize(
    ("hints", "stated", "effect"),
    [
        ({"readOnlyHint": True}, {}, Effect.READ),
        ({"destructiveHint": False}, {}, Effect.WRITE),
        ({"readOnlyHint": False}, {}, Effect.DESTRUCTIVE),
        ({"readOnlyHint": "yes"}, {}, Effect.DESTRUCTIVE),
        ({}, {}, Effect.DESTRUCTIVE),
        ({"readOnlyHint": True}, {"find": Effect.WRITE}, Effect.WRITE),
        ({}, {"find": Effect.READ}, Effect.READ),
    ],
)
def test_the_operator_decides_on_an_effect_then_the_server(
    hints: dict[str, Any], stated: dict[str, Effect], effect: Effect
) -> None:
    [spec] = specs("tool", "find", more={"annotations": hints}, effects=stated)
    assert spec.effect is effect


def test_tools_that_the_operator_does_not_want_are_left_out() -> None:
    assert specs("tool", "find", tools=("get_*",)) == []


def test_an_output_schema_that_is_not_enforced_is_not_promised() -> None:
    more = {"outputSchema": SCHEMA}
    [checked], [unchecked] = specs("tool", "a", more=more), specs("tool", "a", more=more, is_enforced=False)
    assert (checked.output_schema, checked.is_result_unchecked) == (SCHEMA, False)
    assert (unchecked.output_schema, unchecked.is_result_unchecked) == (True, True)


def test_prompts_and_templates_can_be_completed_where_the_server_does() -> None:
    arguments = {"arguments": [{"name": "topic", "required": True, "description": "What."}]}
    prompt, completion = specs("prompt", "ask", more=arguments, completes=True)
    assert (prompt.name, completion.name, completion.completes) == ("git__ask", "git__ask", "prompt")
    assert prompt.input_schema["required"] == ["topic"]
    template, completed = specs("template", "a://{id}", completes=True)
    assert (template.input_schema["properties"], completed.completes) == (
        {"id": {"type": "string"}},
        "resource",
    )
