"""What policy decides on a call that is not made, and why."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.app.explained_decision import PlacedKey, decide_call, doubt_about, explanation
from portbook.policy import Limits, Policy, read_policy
from portbook.stores.caller_keys import AllowedKey
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.spec import Effect, ToolSpec

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"cents": {"type": "integer"}},
    "required": ["cents"],
}
KEYS = (PlacedKey(AllowedKey("ada", "0" * 64, ("read*",)), "portbook.toml:3"),)


@pytest.fixture
def tool() -> Tool:
    (found,) = Catalog([ToolSpec("refund", "Refunds.", SCHEMA, True, Effect.WRITE)])
    return found


def policy() -> Policy:
    rule: dict[str, Any] = {"name": "ask first", "action": "ask", "tools": ["refund"]}
    return read_policy(Limits(), [rule], [], lambda _: "portbook.toml:7")


def test_a_decision_names_its_rule_its_place_and_what_is_wrong_with_the_arguments(tool: Tool) -> None:
    found = explanation(tool, decide_call(policy(), (), tool, {}), {})
    assert (found["tool"], found["effect"], found["decision"]) == ("mcp.tool:refund", "write", "ask")
    assert (found["rule"], found["place"], found["reason"]) == (
        "ask first", "portbook.toml:7", "APPROVAL_REQUIRED",
    )  # fmt: skip
    assert found["remedy"]
    assert "cents" in str(found["violations"])
    assert explanation(tool, decide_call(policy(), (), tool, {}), {"cents": 1})["violations"] == []


def test_a_tool_that_no_key_of_the_caller_opens_is_denied(tool: Tool) -> None:
    denied = decide_call(policy(), KEYS, tool, {}, caller="ada")
    assert (denied.action, denied.place) == ("deny", "portbook.toml:3")
    assert decide_call(policy(), KEYS, tool, {}, caller="bob").rule == "ask first"


def test_a_caller_that_no_key_names_is_doubted_where_there_are_keys() -> None:
    assert "ada" in (doubt_about("adda", KEYS) or "")
    assert doubt_about("ada", KEYS) is doubt_about("anonymous", KEYS) is doubt_about("bob", ()) is None
