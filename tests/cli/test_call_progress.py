"""What a person at the terminal sees of a running tool."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from portbook.cli.call_progress import TerminalClient
from portbook.errors import Failed
from portbook.model import Draft
from support.portbook_process import run
from support.pseudo_terminal import on_a_terminal

TOOLS = """
import time
from portbook import Context, Toolset, ToolError

toolset = Toolset("x")

@toolset.tool(effect="read")
def work(ctx: Context) -> str:
    ctx.progress(1, 3, "step \\x1b[31mone")
    ctx.info({"token": "ghp_0123456789abcdefghijklmnopqrstuvwxyz"}, logger="mine")
    ctx.debug("too much")
    ctx.progress(2, 3)
    return "done"

@toolset.tool(effect="read")
async def trip(ctx: Context) -> str:
    await ctx.progress(0.5)
    raise ToolError("it broke")

@toolset.tool(effect="read", timeout_ms=100)
def linger(ctx: Context) -> str:
    ctx.progress(1, message="waiting")
    time.sleep(1)
    return ""
"""
CLEAR = "\r\x1b[K"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text('[python]\ntoolsets = ["tools.py"]\n')
    return tmp_path


@pytest.mark.covers("design.cli.reports")
def test_progress_and_messages_are_shown_while_the_tool_runs_and_hold_no_secret(folder: Path) -> None:
    shown, code = on_a_terminal(folder, "call", "work")
    assert code == 0
    assert f"{CLEAR}portbook: 1 of 3 step \\x1b[31mone" in shown
    assert 'portbook: info: mine: {"token": "[redacted]"}\n' in shown
    assert f"{CLEAR}portbook: 2 of 3{CLEAR}" in shown
    assert "too much" not in shown
    assert shown.endswith('"done"\n')


@pytest.mark.parametrize(("tool", "words"), [("trip", "it broke"), ("linger", "before its deadline")])
def test_an_error_stands_on_a_line_of_its_own(folder: Path, tool: str, words: str) -> None:
    shown, code = on_a_terminal(folder, "call", tool)
    assert code == 1
    assert words in shown
    assert f"{CLEAR}portbook: " in shown
    assert shown.count(CLEAR) >= 2


def test_a_program_sees_the_result_alone(folder: Path) -> None:
    finished = run("call", "work", cwd=folder)
    assert (finished.code, finished.out) == (0, b'"done"\n')
    assert "of 3" not in finished.err


def test_a_long_line_is_cut_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = io.StringIO()
    TerminalClient(out).progress(1, None, Draft(500, lambda: "x" * 500))
    assert len(out.getvalue().removeprefix(CLEAR)) == 39


def test_a_line_of_progress_is_removed_once() -> None:
    out = io.StringIO()
    client = TerminalClient(out)
    client.flush()
    assert out.getvalue() == ""
    client.progress(1, None, None)
    client.flush()
    client.flush()
    assert out.getvalue() == f"{CLEAR}portbook: 1{CLEAR}"


async def _asked(client: TerminalClient) -> None:
    await client.ask({}, lambda *_: True)


def test_nobody_is_asked() -> None:
    client = TerminalClient(io.StringIO())
    assert (client.capabilities, client.lacks({}), client.detach()) == ({}, {}, False)
    with pytest.raises(Failed):
        _asked(client).send(None)
