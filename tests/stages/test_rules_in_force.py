"""The row of a tool: what is settled before its calls, and when that is worked out again."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.errors import Reason
from portbook.model import Done
from portbook.policy import Action, Limits, Policy
from portbook.stages.rules_in_force import PreparedTool, Rules
from support.fake_world import CALLERS, CATALOG, World, a_call, a_policy, a_rule, case


def _row(name: str, policy: Policy) -> PreparedTool:
    tool = CATALOG.find(name)
    assert tool is not None
    return PreparedTool.of(tool, policy, 1000, lambda arguments, run: None)


def _limited(**limits: Any) -> Policy:
    return Policy(limits=Limits(**limits))


@pytest.mark.parametrize(
    ("policy", "is_settled"),
    [
        case("nothing is said", Policy(), True),
        case("a default denies", _limited(default="deny"), True),
        case("a rule is about a different tool", a_policy(a_rule("deny", tools=["refund"])), True),
        case("a rule is about the tool", a_policy(a_rule("deny", tools=["echo"])), False),
        case("arguments have a cap", _limited(max_payload_bytes=10), False),
        case("attempts have a cap", _limited(max_attempts=3), False),
    ],
)
def test_a_decision_is_settled_where_no_call_can_change_it(policy: Policy, is_settled: bool) -> None:
    assert (_row("echo", policy).decision is not None) is is_settled


def test_the_deadline_is_settled_too() -> None:
    assert _row("echo", Policy()).timeout_ms == 1000
    assert _row("echo", _limited(max_execution_timeout_ms=250)).timeout_ms == 250


def test_only_a_tool_with_effects_has_an_intent() -> None:
    assert not _row("echo", Policy()).has_intent
    assert _row("refund", Policy()).has_intent


def test_changed_rules_begin_without_rows() -> None:
    world = World()
    assert isinstance(world.run(a_call()), Done)
    row = world.pipeline.rules.prepared["tool"]["echo"]
    assert row.decision is not None
    assert row.decision.action is Action.ALLOW
    world.pipeline.govern(Rules(callers=CALLERS, policy=_limited(default="deny")))
    assert world.run(a_call()).reason is Reason.POLICY_VIOLATION
    assert world.pipeline.rules.prepared["tool"]["echo"] is not row


def test_a_row_is_made_once_and_only_for_a_tool_that_exists() -> None:
    world = World()
    world.run(a_call())
    row = world.pipeline.rules.prepared["tool"]["echo"]
    world.run(a_call())
    world.run(a_call(tool="unknown"))
    assert world.pipeline.rules.prepared == {"tool": {"echo": row}}
