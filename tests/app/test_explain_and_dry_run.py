"""What is decided without a call: the policy's word, and that of the caller's key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.app.explain_and_dry_run import PlacedKey, decide_call, doubt_about, explanation
from portbook.policy import Limits, Policy, read_policy
from portbook.stores.caller_keys import AllowedKey
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.spec import Effect, ToolSpec
from support.portbook_process import SAMPLE_TOOLS, TOOLSET, run

DIGEST = "a" * 64
SETTINGS = f"""
[[keys.allow]]
name = "ada"
sha256 = "{DIGEST}"
tools = ["echo"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    return tmp_path


def test_a_tool_that_the_callers_key_does_not_open_is_denied(folder: Path) -> None:
    opened = run("explain", "echo", "text=a", "--caller", "ada", *TOOLSET, cwd=folder)
    assert (opened.code, opened.err) == (0, "")
    closed = run("explain", "hanging", "--caller", "ada", *TOOLSET, cwd=folder)
    assert closed.code == 3
    shown = json.loads(closed.out)
    assert (shown["decision"], shown["rule"], shown["reason"]) == ("deny", "the key's tools", "UNKNOWN_TOOL")
    assert shown["place"] == "portbook.toml:2"


def test_a_case_of_a_policy_test_has_the_key_of_its_caller(folder: Path) -> None:
    (folder / "cases.toml").write_text(
        '[[case]]\ntool = "hanging"\ncaller = "ada"\nexpect = "allow"\nrule = "approval"\n'
    )
    done = run("policy", "test", "cases.toml", *TOOLSET, cwd=folder)
    assert done.code == 1
    [verdict] = json.loads(done.out)["cases"]
    assert (verdict["decision"], verdict["rule"]) == ("deny", "the key's tools")
    assert verdict["expected_rule"] == "approval"


@pytest.mark.parametrize(
    ("caller", "hint"), [("adda", "did you mean ada?"), ("zoe", "`portbook keys create` makes one")]
)
def test_a_caller_that_no_key_names_is_a_warning(folder: Path, caller: str, hint: str) -> None:
    done = run("explain", "echo", "text=a", "--caller", caller, *TOOLSET, cwd=folder)
    assert done.err == f"portbook: warning: no key has the caller {caller!r}; {hint}\n"


def test_keys_of_the_store_count_too(tmp_path: Path) -> None:
    assert run("keys", "create", "bob", "--tools", "echo", cwd=tmp_path).code == 0
    done = run("explain", "hanging", "--caller", "bob", *TOOLSET, cwd=tmp_path)
    assert done.code == 3
    assert json.loads(done.out)["place"] == "portbook.db"


def test_a_policy_that_serve_refuses_is_refused_by_tools(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(
        '[[policy.rules]]\nname = "a"\naction = "deny"\neffects = ["rad"]\n'
    )
    served = run("serve", "--stdio", str(SAMPLE_TOOLS), cwd=tmp_path)
    listed = run("tools", str(SAMPLE_TOOLS), cwd=tmp_path)
    assert (listed.code, listed.err, listed.out) == (served.code, served.err, b"")
    assert listed.code == 2
    assert ":4:12: policy.rules[0].effects[0] is a bad pattern, 'rad': did you mean read?" in listed.err


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
