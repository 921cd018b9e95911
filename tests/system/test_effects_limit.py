"""`[policy] effects` is a limit: nothing else runs, at any door, whatever the rules say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portbook.testing import TestClient
from portbook.tools.toolset import Toolset
from support.portbook_process import run

TOOLS = """
from portbook import Toolset

toolset = Toolset("notes")


@toolset.tool(effect="read")
def look() -> str:
    return "seen"


@toolset.tool(effect="write")
def scribble() -> str:
    return "written"
"""

READ_ONLY = """
[policy]
effects = ["read"]

[[policy.rules]]
name = "everything"
action = "allow"
"""


@pytest.mark.covers("design.policy.effects")
def test_a_call_with_another_effect_is_denied_although_a_rule_allows_it(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(READ_ONLY)
    assert run("call", "look", "--toolset", "notes.py", cwd=tmp_path).code == 0
    denied = run("call", "scribble", "--toolset", "notes.py", "--json", cwd=tmp_path)
    assert denied.code == 3
    assert json.loads(denied.out)["error"]["rule"] == "effects"


def test_a_tool_that_declares_no_effect_counts_as_a_write() -> None:
    toolset = Toolset("notes")
    toolset.tool()(_undeclared)
    with TestClient(toolset, policy={"effects": ["read"]}) as client:
        assert client.call("_undeclared").reason == "POLICY_VIOLATION"


def _undeclared() -> str:
    """Say something."""
    return "said"
