"""`portbook explain`: what policy says of a call, which rule says it, what would change it; nothing runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, Finished, environment, run

TOOLS = """
from pathlib import Path
from portbook import Toolset

toolset = Toolset("explained")
Path(__file__).with_name("loaded").touch()

@toolset.tool(effect="write")
def refund(cents: int = 20000) -> int:
    Path(__file__).with_name("ran").touch()
    return cents

@toolset.tool(effect="read")
def look(text: str = "") -> str:
    return text

@toolset.tool(effect="destructive")
def wipe() -> None: ...

@toolset.resource("notes://{name}")
def note(name: str) -> str:
    return name

@toolset.prompt
def greet(name: str) -> str:
    return name
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]

[policy]
max_payload_bytes = 100
max_attempts = 3

[[policy.rules]]
name = "large refunds need a person"
tools = ["refund"]
where = { "/cents" = { minimum = 10000 } }
action = "ask"

[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"

[[policy.rules]]
name = "bob only looks"
callers = ["bob"]
tools = ["refund"]
action = "deny"

[[policy.rules]]
name = "not at night"
sessions = ["night-*"]
tools = ["look"]
action = "deny"

[[policy.rules]]
name = "no diary"
kinds = ["resource"]
tools = ["notes://*"]
where = { "/name" = { const = "diary" } }
action = "deny"

[[policy.rules]]
name = "no prompts"
kinds = ["prompt"]
action = "deny"

[http.elsewhere]
base_url = "https://elsewhere.example"
[http.elsewhere.tools.get]
method = "GET"
path = "/"
input = { type = "object" }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS)
    return folder


def explain(folder: Path, *arguments: str) -> tuple[Finished, Any]:
    finished = run("explain", *arguments, cwd=folder)
    return finished, json.loads(finished.out) if finished.out else None


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.covers("002.explain")
@pytest.mark.parametrize(
    ("arguments", "code", "decision", "rule", "line", "remedy"),
    [
        case(
            "allowed", ["look", "text=a"], 0, "allow", "default", None,
            "add a rule that denies the call or asks for approval",
        ),
        case(
            "a person is needed", ["refund", "cents=10000"], 3, "ask", "large refunds need a person", 9,
            "approve the call, or send different values at /cents, or change the rule",
        ),
        case(
            "a default that needs a person", ["refund"], 3, "ask", "large refunds need a person", 9,
            "approve the call, or send different values at /cents, or change the rule",
        ),
        case("below that", ["refund", "cents=9999"], 0, "allow", "default", None, None),
        case("denied", ["wipe"], 3, "deny", "nothing destructive", 15, "change the rule"),
        case("with its prefix", ["mcp.tool:wipe"], 3, "deny", "nothing destructive", 15, None),
        case("too large", ["look", "text=" + "x" * 100], 3, "deny", "max_payload_bytes", 6, None),
        case("an attempt too many", ["look", "--attempt", "4"], 3, "deny", "max_attempts", 7, None),
        case("somebody's", ["refund", "cents=1", "--caller", "bob"], 3, "deny", "bob only looks", 20, None),
        case("in another session", ["look", "--session", "night-1"], 3, "deny", "not at night", 26, None),
        case("a resource", ["mcp.resource:notes://today"], 0, "allow", "default", None, None),
        case("what a template takes", ["mcp.resource:notes://diary"], 3, "deny", "no diary", 32, None),
        case("a prompt", ["mcp.prompt:greet", "name=Ada"], 3, "deny", "no prompts", 39, None),
        case(
            "as a document", ["refund", "--input", '{"cents":10000}'], 3, "ask",
            "large refunds need a person", 9, None,
        ),
    ],
)  # fmt: skip
def test_a_decision_is_explained_with_its_rule_its_place_and_what_would_change_it(
    folder: Path,
    arguments: list[str],
    code: int,
    decision: str,
    rule: str,
    line: int | None,
    remedy: str | None,
) -> None:
    finished, shown = explain(folder, *arguments)
    assert finished.code == code, finished.err
    assert (shown["decision"], shown["rule"]) == (decision, rule)
    if line is not None:
        assert shown["place"] == f"portbook.toml:{line}"
    assert remedy in (None, shown["remedy"])
    assert list(shown) == ["tool", "effect", "decision", "rule", "place", "reason", "remedy", "violations"]


def test_explaining_runs_and_records_nothing_and_makes_no_store(folder: Path) -> None:
    explain(folder, "refund", "cents=1")
    assert (folder / "loaded").exists()
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == [
        "loaded",
        "portbook.toml",
        "tools.py",
    ]


def test_a_destination_that_policy_does_not_list_is_explained(folder: Path, tmp_path: Path) -> None:
    assert explain(folder, "elsewhere.get")[1]["decision"] == "allow"  # it is declared, and nothing is listed
    listed = SETTINGS.replace("[policy]\n", '[policy]\nallowed_domains = ["api.example"]\n')
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(listed)
    finished, shown = explain(tmp_path, "elsewhere.get")
    assert (finished.code, shown["rule"], shown["place"]) == (3, "allowed_domains", "portbook.toml:6")
    assert shown["remedy"] == "add the host of its base_url to allowed_domains"


def test_arguments_that_would_be_refused_are_told_beside_the_decision(folder: Path) -> None:
    finished, shown = explain(folder, "refund", "cents=much", "more=1")
    assert (finished.code, shown["decision"]) == (3, "ask")  # with caution: it might be a large one
    assert [(each["pointer"], each["message"]) for each in shown["violations"]] == [
        ("", 'unexpected property "more"'),
        ("/cents", "expected integer"),
    ]


def test_an_unknown_tool_is_told_so(folder: Path) -> None:
    finished, shown = explain(folder, "nothing")
    assert (finished.code, shown) == (4, None)
    assert "there is no tool 'nothing'; `portbook tools` lists what is served" in finished.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("file:///x", "there is no tool 'file:///x'; name a resource as mcp.resource:file:///x"),
        ("notes://a", "there is no tool 'notes://a'; name a resource as mcp.resource:notes://a"),
        ("greet", "there is no tool 'greet'; name a prompt as mcp.prompt:greet"),
        ("mcp.resource:file:///x", "there is no resource 'mcp.resource:file:///x'; `portbook tools` lists"),
    ],
)
def test_what_is_no_tool_is_told_by_the_name_that_it_has(folder: Path, name: str, said: str) -> None:
    finished, shown = explain(folder, name)
    assert (finished.code, shown) == (4, None)
    assert said in finished.err


@pytest.mark.parametrize(
    "arguments", [["refund", "cents"], ["refund", "--input", "[]"], ["look", "--attempt", "0"]]
)
def test_arguments_that_cannot_be_read_are_a_usage_error(folder: Path, arguments: list[str]) -> None:
    finished, shown = explain(folder, *arguments)
    assert (finished.code, shown) == (2, None)
    assert "see `portbook explain --help`" in finished.err


@pytest.mark.covers("002.policy.bad-file")
def test_a_policy_that_cannot_be_meant_is_refused_with_file_line_and_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[policy]\n\n[[policy.rules]]\nname = "a"\naction = "denny"\n')
    for verb in (["explain", "docs.search"], ["serve", "--stdio"], ["call", "docs.search", "query=a"]):
        finished = run(*verb, cwd=tmp_path)
        assert (finished.code, finished.out) == (2, b"")
        assert "portbook.toml:5:1: policy.rules[0].action must be one of deny, ask, allow" in finished.err
        assert "did you mean deny?" in finished.err
        assert "Traceback" not in finished.err


def test_a_terminal_gets_words(folder: Path) -> None:
    controller, terminal = os.openpty()
    done = subprocess.run(
        [*PORTBOOK, "explain", "refund", "cents=10000", "more=1"],
        stdout=terminal,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(NO_COLOR="1"),
    )
    os.close(terminal)
    shown = os.read(controller, 65536).decode().replace("\r\n", "\n")
    os.close(controller)
    assert done.returncode == 3
    assert shown == (
        "mcp.tool:refund (write): ask\n"
        "  decided by: large refunds need a person (portbook.toml:9)\n"
        "  to change it: approve the call, or send different values at /cents, or change the rule\n"
        "  these arguments are invalid, whatever policy decides:\n"
        '    (root): unexpected property "more"\n'
    )
