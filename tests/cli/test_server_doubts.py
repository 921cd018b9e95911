"""Likely mistakes about MCP servers, which `portbook check` finds without starting one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.portbook_process import environment, run

SETTINGS = """
[mcp.git]
command = ["true"]
env = { TOKEN = { env = "GIT_TOKEN" } }
effects = { serch = "read" }

[mcp.web]
url = "https://web.example/mcp"
trust = "first-use"
headers = { Authorization = { env = "WEB_TOKEN" } }

[[policy.rules]]
name = "all"
action = "ask"
tools = ["*"]

[[policy.rules]]
name = "misspelt"
action = "deny"
tools = ["git.serch"]
"""

TOOL = {"description": "Searches.", "inputSchema": {"type": "object"}}


def warnings_of(folder: Path, **env: str) -> list[str]:
    (folder / "portbook.toml").write_text(SETTINGS)
    done = run("check", "--json", cwd=folder, env=environment(**env))
    found = json.loads(done.out)
    assert found["errors"] == []
    return [f"{each['line']}: {each['message']}" for each in found["warnings"]]


def test_what_is_not_approved_and_not_set_is_told_with_its_line(tmp_path: Path) -> None:
    assert warnings_of(tmp_path) == [
        "2: nothing of mcp.git is approved, so nothing is served; run `portbook pin git`",
        "4: the environment variable GIT_TOKEN is not set; mcp.git cannot start",
        "10: the environment variable WEB_TOKEN is not set; mcp.web cannot start",
    ]


@pytest.mark.parametrize(
    ("lines", "is_there"),
    [
        ('command = ["no-such-program"]', False),
        ('command = ["./here.sh"]', True),
        ('command = ["./none.sh"]', False),
        ('command = ["here.sh"]', False),
        ('command = ["here.sh"]\nenv = { PATH = "." }', True),
        ('command = ["unknown"]\nenv = { PATH = { env = "PATH" } }', True),
    ],
)
def test_a_program_that_is_not_there_is_told_at_its_command(
    lines: str, is_there: bool, tmp_path: Path
) -> None:
    (tmp_path / "here.sh").write_text("#!/bin/sh\n")
    (tmp_path / "here.sh").chmod(0o755)
    (tmp_path / "portbook.toml").write_text(f'[mcp.box]\ntrust = "first-use"\n{lines}\n')
    said = run("check", cwd=tmp_path).out.decode()
    told = "portbook.toml:3:1: warning: mcp.box.command: there is no such program; install it, or correct"
    assert (told in said) is not is_there, said


def test_names_are_judged_by_what_is_approved(tmp_path: Path) -> None:
    lock = {"mcp": {"git": {"tools": {"search": TOOL}}}}
    (tmp_path / "portbook.lock").write_text(json.dumps(lock))
    rule, effect = warnings_of(tmp_path, GIT_TOKEN="x" * 20, WEB_TOKEN="y" * 20)
    assert rule.startswith("17: rule 'misspelt' matches nothing that is served; did you mean git.search?")
    assert effect.startswith("5: mcp.git has no approved tool of this name; did you mean search?")
