from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from portbook.cli.call import TerminalClient
from portbook.errors import Failed
from portbook.model import Draft
from support.portbook_process import PORTBOOK, TOOLSET, Finished, child, environment, records, run
from support.pseudo_terminal import on_a_terminal


def test_docs_search_shows_something_real_with_no_configuration(tmp_path: Path) -> None:
    finished = run("call", "docs.search", "query=boundary", cwd=tmp_path)
    result = json.loads(finished.out)
    assert finished.code == 0
    assert result["total"] >= 1
    assert result["hits"][0]["rank"] == 1
    assert result["hits"][0]["document"]["sourcePath"].endswith(".md")


def test_a_call_from_the_command_line_is_recorded_like_any_other(tmp_path: Path) -> None:
    run("call", "echo", "text=hello", *TOOLSET, cwd=tmp_path)
    (record,) = records(tmp_path / "runs")
    assert (record["transport"], record["route"], record["status"]) == ("cli", "call", "ok")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("echo",), 2, '(root): missing property "text"'),
        (("echo", "text=x", "more=1"), 2, 'unexpected property "more"'),
        (("no_such_tool",), 4, "or `portbook tools`"),
        (("mcp.tool:wrong_result",), 5, "expected integer"),
        (("raising", "text=secret-value"), 1, "ValueError at sample_tools.py:"),
        (("NotASlug",), 4, "or `portbook tools`"),
        (("not a name",), 2, "is not a tool name"),
        (("ecko",), 4, "did you mean echo?"),
        (("raising", "text=secret-value"), 1, "--debug prints the traceback"),
    ],
)
def test_an_ending_without_a_result_is_explained_and_has_its_exit_status(
    tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    finished = run("call", *arguments, *TOOLSET, cwd=tmp_path)
    assert finished.code == code
    assert finished.out == b""
    assert sentence in finished.err
    assert "secret-value" not in finished.err
    assert "Traceback" not in finished.err


def test_a_suggestion_never_names_a_tool_that_the_key_does_not_open(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"a key").hexdigest()
    allow = f'[[keys.allow]]\nname = "ada"\nsha256 = "{digest}"\ntools = ["echo_later"]\n'
    (tmp_path / "portbook.toml").write_text(f"{allow}\n[keys]\nrequired = true\n")

    def told(key: str, tool: str) -> Finished:
        return run("call", tool, *TOOLSET, cwd=tmp_path, env=environment(PORTBOOK_KEY=key))

    hidden = told("a key", "raisin")
    assert (hidden.code, "did you mean" in hidden.err, "raising" in hidden.err) == (4, False, False)
    exact = told("a key", "raising")  # it exists, and is as unknown to this caller as the other
    assert (exact.code, exact.err.replace("raising", "raisin")) == (hidden.code, hidden.err)
    assert "did you mean echo_later?" in told("a key", "echo_late").err
    refused = told("a different key", "echo_late")
    assert (refused.code, "did you mean" in refused.err) == (3, False)


def test_whoever_develops_a_tool_sees_its_traceback_and_nobody_else(tmp_path: Path) -> None:
    finished = run("call", "raising", "text=secret-value", "--debug", *TOOLSET, cwd=tmp_path)
    assert (finished.code, finished.out) == (1, b"")
    assert "Traceback (most recent call last)" in finished.err
    assert "\nValueError: " in finished.err
    assert "secret-value" not in json.dumps(records(tmp_path / "runs"))


def test_errors_are_data_on_stdout_with_json(tmp_path: Path) -> None:
    finished = run("call", "echo", "--json", *TOOLSET, cwd=tmp_path)
    error = json.loads(finished.out)["error"]
    assert (finished.code, error["canonical_code"], error["reason"]) == (2, "INVALID_INPUT", "BAD_ARGUMENTS")
    assert error["violations"][0]["message"] == 'missing property "text"'


def test_a_terminal_gets_json_to_read(tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    done = subprocess.run(
        [*PORTBOOK, "call", "docs.search", "query=boundary"], stdout=terminal, cwd=tmp_path, env=environment()
    )
    os.close(terminal)
    shown = os.read(controller, 65536)
    os.close(controller)
    assert done.returncode == 0
    assert shown.startswith(b'{\r\n  "query": "boundary"')


ASKING = '[policy]\napproval = "writes"\n'


def asked(folder: Path, *options: str) -> dict[str, str]:
    """Make a call that needs a person; return what is told of its approval."""
    finished = run("call", "wait_for", f"path={folder}/flag", "--json", *options, *TOOLSET, cwd=folder)
    error = json.loads(finished.out)["error"]
    assert (finished.code, error["reason"]) == (3, "APPROVAL_REQUIRED")
    return error


def test_a_call_that_needs_a_person_says_which_approval_to_wait_for(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(ASKING)
    told = asked(tmp_path)
    finished = run("call", "wait_for", f"path={tmp_path}/flag", *TOOLSET, cwd=tmp_path)
    assert (finished.code, finished.out) == (3, b"")
    assert f"approval_id: {told['approval_id']}" in finished.err
    assert f"expires_at: {told['expires_at']}" in finished.err
    assert not (tmp_path / "flag").exists()


@pytest.mark.covers("002.approval.command-line")
def test_an_approval_is_redeemed_once_by_the_call_that_it_was_given_for(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(ASKING)

    def call(text: str, *options: str) -> Finished:
        return run("call", "raising", f"text={text}", "--json", *options, *TOOLSET, cwd=tmp_path)

    approval = json.loads(call("a").out)["error"]["approval_id"]
    assert run("approvals", "approve", approval, cwd=tmp_path).code == 0
    other = json.loads(call("b", "--approval", approval).out)["error"]
    assert (other["reason"], other["why"]) == ("APPROVAL_REFUSED", "arguments")
    ran = call("a", "--approval", approval)
    assert (ran.code, json.loads(ran.out)["error"]["reason"]) == (1, "TOOL_FAILED")
    again = call("a", "--approval", approval)
    assert (again.code, json.loads(again.out)["error"]["why"]) == (3, "used")


def test_a_call_waits_for_a_decision_as_long_as_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(ASKING)
    with child(
        [*PORTBOOK, "call", "wait_for", f"path={tmp_path}/flag", "--wait-ms", "60000", *TOOLSET],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    ) as waiting:
        approvals: list[dict[str, str]] = []
        while not approvals:
            assert waiting.poll() is None
            approvals = json.loads(run("approvals", "list", cwd=tmp_path).out)["approvals"]
        assert run("approvals", "approve", approvals[0]["approval_id"], cwd=tmp_path).code == 0
        while not (tmp_path / "flag").exists():
            assert waiting.poll() is None
            time.sleep(0.005)
        (tmp_path / "flag").unlink()
        assert waiting.stdout is not None
        assert waiting.stdout.read() == b'"released"\n'
        assert waiting.wait(30) == 0


def test_a_call_that_waited_in_vain_says_that_a_person_is_needed(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(ASKING)
    assert asked(tmp_path, "--wait-ms", "1") == asked(tmp_path)


@pytest.mark.parametrize("wait", ["-1", "600001", "soon"])
def test_nobody_waits_for_ever_or_in_the_past(tmp_path: Path, wait: str) -> None:
    finished = run("call", "echo", "text=a", "--wait-ms", wait, *TOOLSET, cwd=tmp_path)
    assert finished.code == 2
    assert "see `portbook call --help`" in finished.err


def test_a_denied_call_names_its_rule_and_is_not_allowed(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(
        '[[policy.rules]]\nname = "nothing written"\neffects = ["write"]\naction = "deny"\n'
    )
    finished = run("call", "wait_for", f"path={tmp_path}/flag", *TOOLSET, cwd=tmp_path)
    assert (finished.code, finished.out) == (3, b"")
    assert "rule: nothing written" in finished.err
    assert not (tmp_path / "flag").exists()


def test_a_call_without_settings_and_toolsets_says_how_to_name_them(tmp_path: Path) -> None:
    unknown = run("call", "x", cwd=tmp_path)
    assert "there is no portbook.toml here; name its file with --toolset" in unknown.err
    given = run("call", "x", "mine.py", cwd=tmp_path)
    assert "'mine.py': write arguments as name=value; write --toolset mine.py for a toolset" in given.err


def test_a_store_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[store]\npath = "."\n[policy]\napproval = "always"\n')
    finished = run("call", "echo", "text=x", *TOOLSET, cwd=tmp_path)
    assert f"portbook.toml:2:1: store.path: {tmp_path}: cannot be opened" in finished.err
    assert finished.code == 1
    assert "cannot be opened" in run("doctor", cwd=tmp_path).out.decode()


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
