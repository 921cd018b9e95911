"""A plain line of `serve` means what click reads in it; every other line is left to click."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from portbook.cli.plain_serve_line import plain_line
from portbook.cli.serve_command import command
from support.portbook_process import PORTBOOK, environment

PLAIN = [
    "serve",
    "serve tools.py",
    "serve --stdio tools.py other.py",
    "serve tools.py --stdio --debug",
    "serve --deterministic-ids --stdio --stdio",
    "serve --config settings.toml tools.py --log-dir records",
    "serve --config=settings.toml --log-dir=records",
    "serve --config=a=b.toml",
    "serve --config no-such-file.toml --log-dir no-such-folder",
    "serve --config first.toml --config settings.toml",
    "serve =odd a=b",
]

OTHERS = [
    "",
    "call tools.py",
    "--version",
    "-h",
    "serve -h",
    "serve --help",
    "serve --stdi tools.py",
    "serve --http",
    "serve --http --port 5",
    "serve --reload --stdio",
    "serve --workers 2",
    "serve --server a",
    "serve --schema-override a",
    "serve --stdio=yes",
    "serve --config",
    "serve --config=",
    "serve --config --stdio",
    "serve --config .",
    "serve --log-dir settings.toml",
    "serve -- tools.py",
    "serve -",
    "serve --no-such-option",
    "serve --config settings.toml/below",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.toml").touch()
    (tmp_path / "records").mkdir()
    return tmp_path


def as_click_reads(line: str) -> dict[str, Any]:
    """The options that a line sets, and its toolsets, as click hands them to the verb."""
    # Click keeps the names of the first help option that a command was asked for.
    settings = {"help_option_names": ["-h", "--help"]}
    with command.make_context("serve", line.split()[1:], **settings) as context:
        read = context.params
    with command.make_context("serve", [], **settings) as context:
        without = context.params
    set_there = {name: value for name, value in read.items() if value != without[name]}
    return {"toolsets": read["toolsets"], **set_there}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_says_what_click_reads_in_it(line: str) -> None:
    read = plain_line(line.split(), {})
    assert read is not None
    paths = {name: Path(read[name]) for name in ("config", "log_dir") if name in read}
    assert read | paths == as_click_reads(line)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", OTHERS)
def test_any_other_line_is_left_to_click(line: str) -> None:
    assert plain_line(line.split(), {}) is None


def test_a_file_that_may_not_be_read_an_empty_name_and_a_completion_are_left_to_click(folder: Path) -> None:
    assert plain_line(["serve", ""], {}) is None
    assert plain_line(["serve"], {"_PORTBOOK_COMPLETE": "bash_complete"}) is None
    (folder / "loop").symlink_to("loop")
    assert plain_line(["serve", "--config", "loop"], {}) is None


def test_each_option_of_the_verb_is_plain_or_left_to_click() -> None:
    names = [name for each in command.params if isinstance(each, click.Option) for name in each.opts]
    assert len(names) > 10
    plain = [
        name for name in names if plain_line(["serve", name], {}) or plain_line(["serve", name, "x"], {})
    ]
    assert sorted(plain) == ["--config", "--debug", "--deterministic-ids", "--log-dir", "--stdio"]


TOOLS = """
import sys
from portbook import Toolset
toolset = Toolset("plain")
@toolset.tool(effect="read")
def libraries() -> dict[str, bool]:
    return {"click": "click" in sys.modules}
"""


@pytest.mark.parametrize(
    ("options", "with_click"), [(["--stdio"], False), ([], False), (["--server=a"], True)]
)
def test_a_server_imports_click_only_for_lines_that_are_not_plain(
    options: list[str], with_click: bool, tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    settings = '[docs]\nenabled = false\n[mcp.a]\ncommand = ["no-such-program"]\nstart = "lazy"\n'
    (tmp_path / "portbook.toml").write_text(settings)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "libraries", "arguments": {}, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    done = subprocess.run(
        [*PORTBOOK, "serve", *options, "tools.py"],
        input=json.dumps(call) + "\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["result"]["structuredContent"] == {"click": with_click}, answer


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["no_such_tools.py"], 2, "error: no_such_tools.py: "),
        (["--config", "none.toml"], 2, "error: none.toml: "),
    ],
)
def test_what_is_wrong_with_a_plain_line_is_said_in_one_line(
    arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "portbook", "serve", "--stdio", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert said in done.stderr
