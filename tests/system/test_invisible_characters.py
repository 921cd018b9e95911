"""No character of a caller that reorders, hides or moves text reaches a record, standard error or a list."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import handshake
from support.portbook_process import run

BAD = "".join(
    map(
        chr,
        (
            *(0x7F, 0x80, 0x85, 0x9B, 0x9F),
            *(0x061C, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2028, 0x2029),
            *range(0x202A, 0x202F),
            *(0x2060, *range(0x2066, 0x206A), 0xFEFF),
        ),
    )
)

TOOLS = '''
from portbook import Toolset
toolset = Toolset("t")
@toolset.tool(effect="write", inline=True)
def echo(text: str) -> str:
    """Return the text. BAD"""
    if text.startswith("fail"):
        raise ValueError(text)
    return text
@toolset.prompt
def greet(name: str) -> str:
    """Greet."""
    return name
'''


def frame(number: int, method: str, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message, ensure_ascii=False).encode()


FRAMES = [
    frame(0, "initialize", handshake("2025-06-18")),
    frame(
        1, "tools/call", {"name": "echo", "arguments": {"text": BAD}, "_meta": {"portbook/session_id": BAD}}
    ),
    frame(2, "tools/call", {"name": "echo", "arguments": {BAD: {BAD: 1}}}),
    frame(3, "tools/call", {"name": BAD, "arguments": {}}),
    frame(4, "prompts/get", {"name": BAD}),
    frame(5, BAD, {}),
    frame(
        6,
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": BAD}, "argument": {"name": BAD, "value": BAD}},
    ),
    frame(7, "tools/call", {"name": "echo", "arguments": {"text": f"fail {BAD}"}}),
    frame(
        8,
        "mcp.tool.invoke",
        {
            "tool": "mcp.tool:echo",
            "input": {"text": "x"},
            "context": {"agentId": BAD, "taskId": BAD, "stepId": BAD, "promptId": BAD},
        },
    ),
    frame(9, "tools/list", {"cursor": BAD, "_meta": {BAD: BAD}}),
]


def hidden_in(text: str) -> set[str]:
    """The characters of a text, line breaks aside, that a terminal does not simply show."""
    return {
        character
        for character in text.replace("\n", "")
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS.replace("BAD", BAD.replace("\x85", "")), "utf-8")
    (tmp_path / "portbook.toml").write_text(
        '[audit]\nstderr = true\narguments = true\n[python]\ntoolsets = ["tools.py"]\n'
    )
    served = run("serve", "--stdio", "--debug", stdin=b"\n".join(FRAMES) + b"\n", cwd=tmp_path)
    assert len(served.answers) == len(FRAMES)
    (tmp_path / "stderr").write_text(served.err, "utf-8")
    return tmp_path


@pytest.mark.covers("design.invisible-characters")
def test_records_and_standard_error_hold_none(folder: Path) -> None:
    files = [path for path in folder.rglob("2*.jsonl") if not path.is_symlink()]
    assert {path.parent.name for path in files} == {"basis", "envelope_validation", "execution", "intent"}
    for path in (folder / "stderr", *files):
        assert hidden_in(path.read_text("utf-8")) == set(), path.name
    arguments = [
        json.loads(line).get("arguments") for path in files for line in path.read_bytes().split(b"\n") if line
    ]
    assert {"text": BAD} in arguments, "the value is the same once it is parsed"
    assert "ValueError: fail" in (folder / "stderr").read_text("utf-8")
    assert run("audit", "verify", cwd=folder).code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "tail", "-n", "50"),
        ("audit", "export"),
        ("audit", "export", "--format", "csv"),
        ("audit", "show", "2"),
        ("tools",),
        ("explain", BAD),
        ("init", "a", BAD),
        ("serve", f"--{BAD}"),
        ("serve", "--port", BAD),
        ("audit", BAD),
        (f"-{BAD}",),
        ("call", "echo", f"{BAD}=1"),
        ("call", BAD),
        ("serve", "--stdio", f"{BAD}.py"),
        ("tools", "--config", BAD),
        ("policy", "test", BAD),
        ("envelope", "check", BAD),
        ("init", BAD),
        ("approvals", "show", BAD),
        ("keys", "create", BAD),
        ("keys", "list"),
        ("diff", BAD, BAD),
        ("validate", BAD),
    ],
    ids=lambda arguments: "-".join(arguments).replace(BAD, "BAD"),
)
def test_commands_print_none(folder: Path, arguments: tuple[str, ...]) -> None:
    done = run(*arguments, cwd=folder)
    assert hidden_in(done.out.decode()) == set()
    assert hidden_in(done.err) == set()


def test_a_name_with_a_line_break_cannot_look_like_a_message_of_its_own(tmp_path: Path) -> None:
    done = run("tools", "--config", f"a{os.linesep}portbook: all is well", cwd=tmp_path)
    assert done.code == 2
    assert [line for line in done.err.splitlines() if line.startswith("portbook: all is well")] == []


@pytest.mark.parametrize("arguments", [("init", "a"), ("serve", "--port"), ("audit",)])
def test_an_argument_that_click_quotes_stays_on_its_line(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*arguments, f"x{os.linesep}Error: all is well\x1b[2J", cwd=tmp_path)
    assert done.code == 2
    assert "\x1b" not in done.err
    assert [line for line in done.err.splitlines() if line.startswith("Error: all is well")] == []
