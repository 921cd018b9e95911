"""`portbook policy test|diff`: a policy tried out on cases that are written down, and on recorded calls."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, Finished, environment, invoke, run

TOOLS = """
from portbook import Toolset

toolset = Toolset("tried")

@toolset.tool(effect="write")
def refund(cents: int) -> int:
    return cents

@toolset.resource("notes://{name}")
def note(name: str) -> str:
    return name

@toolset.tool(effect="read")
def look(text: str = "") -> str:
    return text
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[audit]
arguments = {arguments}

[policy]
max_attempts = 3

[[policy.rules]]
name = "large refunds need a person"
tools = ["refund"]
where = {{ "/cents" = {{ minimum = {large} }} }}
action = "ask"

[[policy.rules]]
name = "bob only looks"
tools = ["refund"]
callers = ["bob"]
action = "deny"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(SETTINGS.format(arguments="true", large=10_000))
    return tmp_path


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


# --- policy test


CASES = """
[[case]]
name = "a small one"
tool = "refund"
args = { cents = 1 }
expect = "allow"

[[case]]
tool = "mcp.tool:refund"
args = { cents = 10000 }
expect = "ask"
rule = "large refunds need a person"

[[case]]
tool = "refund"
args = { cents = 1 }
caller = "bob"
session = "s-1"
attempt = 2
expect = "deny"

[[case]]
tool = "mcp.resource:notes://today"
expect = "allow"
"""


def try_out(folder: Path, text: str) -> tuple[Finished, Any]:
    (folder / "cases.toml").write_text(text)
    finished = run("policy", "test", "cases.toml", cwd=folder)
    return finished, json.loads(finished.out) if finished.out else None


@pytest.mark.covers("002.policy.test")
def test_a_table_of_expected_decisions_is_as_expected(folder: Path) -> None:
    finished, shown = try_out(folder, CASES)
    assert finished.code == 0
    assert finished.err == "portbook: 4 of 4 cases as expected\n"
    assert shown["ok"] is True
    assert [(each["place"], each["decision"]) for each in shown["cases"]] == [
        ("cases.toml:2", "allow"),
        ("cases.toml:8", "ask"),
        ("cases.toml:14", "deny"),
        ("cases.toml:22", "allow"),
    ]
    assert [each["case"] for each in shown["cases"]] == ["a small one", "refund", "refund", "notes://{name}"]
    assert not (folder / "runs").exists()
    assert not (folder / "portbook.db").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("another decision", 'expect = "ask"', 'expect = "deny"'),
        case("another rule", 'rule = "large refunds need a person"', 'rule = "bob only looks"'),
    ],
)
def test_a_decision_that_differs_fails_the_test_and_is_named(folder: Path, old: str, new: str) -> None:
    finished, shown = try_out(folder, CASES.replace(old, new))
    assert (finished.code, shown["ok"]) == (1, False)
    assert [each["ok"] for each in shown["cases"]] == [True, False, True, True]
    failed = shown["cases"][1]
    assert (failed["decision"], failed["rule"]) == ("ask", "large refunds need a person")
    assert failed["rule_place"] == "portbook.toml:12"
    assert finished.err == "portbook: 3 of 4 cases as expected\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        case("not TOML", "[[case", "cases.toml:1:7: not TOML"),
        case("no cases", "", "cases.toml:1:1: must hold a list of cases, each started with [[case]]"),
        case("one that is no list", "[case]\ntool = 'look'", "cases.toml:1:1: must hold a list of cases"),
        case("no tables", "case = [1]", "cases.toml:1: start each case with [[case]]"),
        case(
            "something else", "\n[[case]]\ntool = 'look'\nexpect = 'allow'\nargz = {}",
            "cases.toml:2: 'argz' is not part of a case; did you mean args?",
        ),
        case("no expectation", "[[case]]\ntool = 'look'", "cases.toml:1: expect must be one of deny, ask"),
        case("a misspelt one", "[[case]]\ntool = 'look'\nexpect = 'deni'", "did you mean deny?"),
        case("no tool", "[[case]]\nexpect = 'deny'", "cases.toml:1: no such tool"),
        case("an unknown tool", "[[case]]\ntool = 'no'\nexpect = 'deny'", "no such tool; `portbook tools`"),
        case("a misspelt tool", "[[case]]\ntool = 'loook'\nexpect = 'deny'", "did you mean look?"),
        case(
            "arguments that are no table", "[[case]]\ntool = 'look'\nexpect = 'deny'\nargs = [1]",
            "cases.toml:1: args must be a table\n",
        ),
        case(
            "a date", "[[case]]\ntool = 'look'\nexpect = 'deny'\nargs = { at = 1979-05-27 }",
            "cases.toml:1: args must be a table that JSON can hold",
        ),
        case(
            "an attempt that is a text", "[[case]]\ntool = 'look'\nexpect = 'deny'\nattempt = '1'",
            "cases.toml:1: attempt must be a whole number",
        ),
        case(
            "a caller that is a number", "[[case]]\ntool = 'look'\nexpect = 'deny'\ncaller = 5",
            "cases.toml:1: caller must be a string",
        ),
        case(
            "a name that is a number", "[[case]]\ntool = 'look'\nexpect = 'deny'\nname = 5",
            "cases.toml:1: name must be a string",
        ),
    ],
)  # fmt: skip
def test_a_file_of_cases_that_cannot_be_meant_is_refused_with_its_line(
    folder: Path, text: str, said: str
) -> None:
    finished, shown = try_out(folder, text)
    assert (finished.code, shown) == (2, None)
    assert said in finished.err
    assert "Traceback" not in finished.err


def test_a_file_of_cases_that_is_not_there_is_told_so(folder: Path) -> None:
    finished = run("policy", "test", "missing.toml", cwd=folder)
    assert finished.code == 2
    assert "missing.toml: cannot be read: No such file or directory" in finished.err


def in_a_terminal(folder: Path, *arguments: str) -> tuple[int, str]:
    controller, terminal = os.openpty()
    done = subprocess.run(
        [*PORTBOOK, *arguments],
        stdout=terminal,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(NO_COLOR="1"),
    )
    os.close(terminal)
    shown = os.read(controller, 65536).decode().replace("\r\n", "\n")
    os.close(controller)
    return done.returncode, shown


def test_a_terminal_gets_a_line_for_each_case(folder: Path) -> None:
    (folder / "cases.toml").write_text(CASES.replace('expect = "deny"', 'expect = "ask"'))
    code, shown = in_a_terminal(folder, "policy", "test", "cases.toml")
    assert code == 1
    assert shown == (
        "ok     cases.toml:2: a small one: allow by default (portbook.toml:9)\n"
        "ok     cases.toml:8: refund: ask by large refunds need a person (portbook.toml:12)\n"
        "FAILED cases.toml:14: refund: deny by bob only looks (portbook.toml:18), expected ask\n"
        "ok     cases.toml:22: notes://{name}: allow by default (portbook.toml:9)\n"
    )


# --- policy diff


def record_calls(folder: Path, *, arguments: bool) -> None:
    """Make some calls, and leave their records."""
    settings = SETTINGS.format(arguments=str(arguments).lower(), large=10_000)
    (folder / "portbook.toml").write_text(settings)
    calls = [invoke("refund", {"cents": cents}) for cents in (1, 500, 20_000)]
    calls += [invoke("look", {}), invoke("nothing", {})]
    finished = run("serve", "--stdio", stdin=b"\n".join(calls), cwd=folder)
    assert len(finished.answers) == 5


def diffed(folder: Path, new: str) -> tuple[Finished, Any]:
    (folder / "new.toml").write_text(new)
    finished = run("policy", "diff", "portbook.toml", "new.toml", "--audit", "runs", cwd=folder)
    return finished, json.loads(finished.out) if finished.out else None


@pytest.mark.covers("002.policy.diff")
def test_recorded_calls_are_replayed_and_changed_decisions_are_shown(folder: Path) -> None:
    record_calls(folder, arguments=True)
    finished, shown = diffed(folder, SETTINGS.format(arguments="true", large=100))
    assert finished.code == 1
    assert shown["replayed"] == 4  # one of the five was of no tool
    assert shown["changes"] == [
        {
            "tool": "refund",
            "caller": "anonymous",
            "calls": 1,
            "old": {"decision": "allow", "rule": "default (portbook.toml:9)"},
            "new": {"decision": "ask", "rule": "large refunds need a person (new.toml:12)"},
        }
    ]
    assert finished.err == "portbook: 4 recorded calls, 1 decided differently\n"


def test_the_same_policy_changes_nothing(folder: Path) -> None:
    record_calls(folder, arguments=True)
    finished, shown = diffed(folder, (folder / "portbook.toml").read_text())
    assert (finished.code, shown) == (0, {"replayed": 4, "undecided": 0, "changes": []})


def test_without_recorded_arguments_what_depends_on_them_is_unknown(folder: Path) -> None:
    record_calls(folder, arguments=False)
    finished, shown = diffed(folder, "[policy]\napproval = 'writes'\n")
    assert finished.code == 1
    (change,) = shown["changes"]
    assert (change["calls"], change["old"]) == (3, {"decision": "unknown", "rule": ""})
    assert change["new"] == {"decision": "ask", "rule": "approval (new.toml:2)"}


def test_calls_of_apis_are_replayed_where_they_were_recorded(tmp_path: Path) -> None:
    api = """
[http.api]
base_url = "http://127.0.0.1:9"
[http.api.tools.get]
method = "GET"
path = "/things"
input = { type = "object" }
"""
    (tmp_path / "portbook.toml").write_text(api)
    assert run("call", "api.get", cwd=tmp_path).code == 1  # nobody is there, but it is recorded
    finished, shown = diffed(tmp_path, '[policy]\nallowed_domains = ["api.example"]\n' + api)
    assert finished.code == 1
    (change,) = shown["changes"]
    assert change["old"]["decision"] == "allow"
    assert change["new"] == {"decision": "deny", "rule": "allowed_domains (new.toml:2)"}


def test_a_line_that_is_no_record_is_left_out_and_told(folder: Path) -> None:
    record_calls(folder, arguments=True)
    path = (folder / "runs/mcp_server/execution/execution.latest.jsonl").resolve()
    path.write_text("nonsense\n[]\n" + path.read_text())
    finished, shown = diffed(folder, (folder / "portbook.toml").read_text())
    assert (finished.code, shown["replayed"]) == (0, 4)
    assert f"{path.name}:1: not a record; skipped" in finished.err


def test_a_policy_that_cannot_be_meant_is_refused_by_its_file(folder: Path) -> None:
    record_calls(folder, arguments=True)
    finished, shown = diffed(folder, "[policy]\nmax_attempts = 0\n")
    assert (finished.code, shown) == (2, None)
    assert "new.toml:2:1: policy.max_attempts must be a whole number from 1" in finished.err


def test_a_terminal_gets_a_line_for_each_change(folder: Path) -> None:
    record_calls(folder, arguments=True)
    (folder / "new.toml").write_text("[policy]\ndefault = 'deny'\n")
    code, shown = in_a_terminal(folder, "policy", "diff", "portbook.toml", "new.toml", "--audit", "runs")
    assert code == 1
    assert shown == (
        "look by anonymous: allow -> deny by default (new.toml:2), 1 call\n"
        "refund by anonymous: allow -> deny by default (new.toml:2), 2 calls\n"
        "refund by anonymous: ask -> deny by default (new.toml:2), 1 call\n"
    )
