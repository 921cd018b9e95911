"""Recorded calls, counted by how their decision changes."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.app.replay_of_recorded_calls import ReplayedCalls
from portbook.policy import Limits, Policy, read_policy

RECORD: dict[str, Any] = {
    "tool_id": "mcp.tool:refund", "effect": "write", "caller": "ada", "attempt": 1, "input_bytes": 2,
}  # fmt: skip


def policy(*rules: dict[str, Any]) -> Policy:
    return read_policy(Limits(), rules, [], lambda path: f"p.toml:{path[-1]}")


def test_calls_are_counted_by_tool_caller_and_what_changes() -> None:
    calls = ReplayedCalls(policy(), policy({"name": "no", "action": "deny", "tools": ["refund"]}))
    other: list[dict[str, Any]] = [{**RECORD, "tool_id": "mcp.tool:read"}, {"method": "initialize"}]
    for record in (RECORD, RECORD, *other):
        calls.add(record)
    assert (calls.replayed, calls.changed, calls.undecided) == (3, 2, 0)
    data: dict[str, Any] = calls.as_data()
    (row,) = data["changes"]
    assert row == {
        "tool": "refund",
        "caller": "ada",
        "calls": 2,
        "old": {"decision": "allow", "rule": "default (p.toml:default)"},
        "new": {"decision": "deny", "rule": "no (p.toml:0)"},
    }


def test_a_call_whose_arguments_are_not_recorded_is_undecided() -> None:
    rule: dict[str, Any] = {
        "name": "much",
        "action": "deny",
        "where": {"/cents": {"type": "number", "minimum": 5}},
    }
    calls = ReplayedCalls(policy(), policy(rule))
    calls.add(RECORD)
    calls.add({**RECORD, "arguments": {"cents": 1}})
    assert (calls.replayed, calls.undecided, calls.changed) == (2, 1, 1)


@pytest.mark.parametrize(
    ("rule", "one", "other"),
    [
        ({"sessions": ["s-1"]}, {"session_id": "s-1"}, {"session_id": "s-2"}),
        ({"callers": ["ada"]}, {"caller": "ada"}, {"caller": "bob"}),
        ({"effects": ["write"]}, {"effect": "write"}, {"effect": "read"}),
        ({"tools": ["a"]}, {"tool_id": "mcp.tool:a"}, {"tool_id": "mcp.tool:b"}),
        ({"kinds": ["prompt"]}, {"tool_id": "mcp.prompt:a"}, {"tool_id": "mcp.tool:a"}),
        ({"where": {"/a": {"const": 1}}}, {"arguments": {"a": 1}}, {"arguments": {"a": 2}}),
    ],
)
def test_calls_are_told_apart_by_all_that_a_rule_looks_at(
    rule: dict[str, Any], one: dict[str, Any], other: dict[str, Any]
) -> None:
    calls = ReplayedCalls(policy(), policy({"name": "no", "action": "deny", **rule}))
    for members in (other, one, other, one):
        calls.add({**RECORD, **members})
    assert (calls.replayed, calls.changed) == (4, 2)


def test_calls_are_told_apart_by_what_a_limit_looks_at() -> None:
    calls = ReplayedCalls(policy(), read_policy(Limits(max_payload_bytes=5, max_attempts=2), [], [], str))
    for members in ({}, {"input_bytes": 6}, {"attempt": 3}, {}):
        calls.add({**RECORD, **members})
    assert (calls.replayed, calls.changed) == (4, 2)
