"""`/operator/policy`: rules with their place, and decisions on calls that are not made."""

from __future__ import annotations

import json

import pytest

from support.operator_console import Console
from support.portbook_process import run


@pytest.mark.covers("design.operator.policy")
def test_the_rules_in_force_are_shown_with_their_place(console: Console) -> None:
    found = console.ask("/operator/policy")[1]
    (rule,) = found["rules"]
    assert (rule["name"], rule["action"], rule["tools"]) == ("ask before keeping", "ask", ["notes.keep"])
    lines = console.folder.settings.read_text().splitlines()
    assert rule["place"] == f"portbook.toml:{lines.index('[[policy.rules]]') + 1}"
    limit = next(each for each in found["limits"] if each["name"] == "max_payload_bytes")
    assert (limit["value"], limit["place"].partition(":")[0]) == (2000, "portbook.toml")


@pytest.mark.covers("design.operator.explain")
@pytest.mark.parametrize("caller", ["anonymous", "ada", "adda"])
def test_a_call_is_explained_as_the_command_line_does(console: Console, caller: str) -> None:
    asked = {"tool": "notes.keep", "args": {"name": 1}, "caller": caller}
    found = console.ask("/operator/policy/explain", asked)[1]
    assert bool(found.pop("warnings")) is (caller == "adda")
    words = ("notes.keep", "--input", '{"name": 1}', "--caller", caller, "--json")
    told = run("explain", *words, cwd=console.folder.path)
    assert found == json.loads(told.out)
    assert console.ask("/operator/policy/explain", {"tool": "nothing"})[0] == 404


@pytest.mark.covers("design.operator.replay")
def test_a_changed_policy_is_tried_on_recorded_calls(console: Console) -> None:
    console.call("box.list")
    text = console.folder.settings.read_text() + (
        '[[policy.rules]]\nname = "no lists"\naction = "deny"\ntools = ["box.list"]\n'
    )
    status, found = console.ask("/operator/policy/replay", {"policy": text})
    assert (status, found["complete"], found["undecided"]) == (200, True, 0)
    (change,) = [each for each in found["changes"] if each["tool"] == "box.list"]
    assert (change["old"]["decision"], change["new"]["decision"]) == ("allow", "deny")
    assert change["new"]["rule"].startswith("no lists (portbook.toml:")
    assert found["ignored"] == ["audit", "docs", "keys", "mcp", "python"]
    (console.folder.path / "new.toml").write_text(text)
    told = run(
        *("policy", "diff", "portbook.toml", "new.toml", "--audit", "runs", "--json"), cwd=console.folder.path
    )
    assert json.loads(told.out)["changes"][0]["new"]["decision"] == change["new"]["decision"]
    later = console.ask("/operator/policy/replay", {"policy": text, "since": "2126-01-01"})[1]
    assert later["replayed"] == 0


def test_a_policy_with_a_mistake_is_told_with_line_and_column(console: Console) -> None:
    answer = console.ask("/operator/policy/replay", {"policy": "[policy]\ndefalt = 1"})[1]
    (violation,) = answer["error"]["details"]["violations"]
    assert violation["message"].startswith("policy:2:1: unknown setting 'policy.defalt'; did you mean")
