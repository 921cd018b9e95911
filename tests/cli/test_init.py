"""`portbook init`: a settings file to start from, that loads, and means what it says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from portbook.cli.init import STARTER
from portbook.settings import load_settings
from support.portbook_process import run

TOOLS = """
from portbook import Toolset

toolset = Toolset("started")

@toolset.tool(effect="read")
def look() -> None: ...

@toolset.tool(effect="write")
def refund(cents: int) -> int:
    return cents

@toolset.tool(effect="destructive")
def wipe() -> None: ...
"""


def test_the_file_loads_and_every_key_in_it_is_one(tmp_path: Path) -> None:
    finished = run("init", cwd=tmp_path)
    assert (finished.code, finished.out) == (0, b"")
    assert "wrote portbook.toml" in finished.err
    settings = load_settings(None, {}, {}, tmp_path)
    assert (settings.limits.approval, settings.limits.max_attempts) == ("writes", 3)
    assert [rule["action"] for rule in settings.policy_rules] == ["deny"]
    assert run("tools", cwd=tmp_path).code == 0


@pytest.mark.covers("002.init")
@pytest.mark.parametrize(
    ("tool", "decision", "rule"),
    [("look", "allow", "default"), ("refund", "ask", "approval"), ("wipe", "deny", "nothing destructive")],
)
def test_reading_is_allowed_writing_asks_and_destroying_is_denied(
    tmp_path: Path, tool: str, decision: str, rule: str
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    run("init", cwd=tmp_path)
    finished = run("explain", tool, "--toolset", "tools.py", cwd=tmp_path)
    shown = json.loads(finished.out)
    assert (shown["decision"], shown["rule"]) == (decision, rule)
    assert finished.code == (0 if decision == "allow" else 3)


def uncommented(text: str) -> str:
    """The file with everything that it shows in comments put into force, and its prose left out."""
    lines = (line.removeprefix("# ") for line in text.splitlines())
    return "\n".join(line for line in lines if re.match(r"\[|[a-z_]+ = ", line))


def test_what_the_file_shows_in_comments_can_be_put_into_force(tmp_path: Path) -> None:
    text = uncommented(STARTER)
    shown = tomllib.loads(text)
    assert shown["policy"]["allowed_domains"]
    assert shown["http"]["orders"]["tools"]["get_order"]["effect"] == "read"
    assert len(shown["policy"]["rules"]) == 2
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(text)
    for arguments, decision in (
        (("orders.get_order", "id=7"), "allow"),
        (("refund", "cents=1000"), "allow"),
        (("refund", "cents=1001"), "ask"),
    ):
        finished = run("explain", *arguments, cwd=tmp_path)
        assert json.loads(finished.out)["decision"] == decision, finished.err


def test_a_file_that_is_there_is_written_over_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "portbook.toml"
    path.write_text("# mine\n")
    refused = run("init", cwd=tmp_path)
    assert (refused.code, path.read_text()) == (1, "# mine\n")
    assert "portbook.toml exists; --force overwrites it" in refused.err
    assert run("init", "--force", cwd=tmp_path).code == 0
    assert path.read_text() == STARTER


def test_the_file_can_have_another_name(tmp_path: Path) -> None:
    finished = run("init", "other.toml", cwd=tmp_path)
    assert finished.code == 0
    assert "`portbook tools --config other.toml` lists what it serves" in finished.err
    assert run("tools", "--config", "other.toml", cwd=tmp_path).code == 0
    assert (tmp_path / "other.toml").read_text() == STARTER
    assert not (tmp_path / "portbook.toml").exists()


def test_a_folder_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    finished = run("init", "missing/portbook.toml", cwd=tmp_path)
    assert finished.code == 1
    assert finished.err == (
        "portbook: error: missing/portbook.toml: cannot be written: No such file or directory;"
        " create its folder, or name a different file\n"
    )
