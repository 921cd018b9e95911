"""What the README and the docs show is what happens.

Each page gets a folder of its own. From top to bottom, a fenced block that names a file (in a first line `#
my_tools.py`, or after the language) is written there, and each `$ command` of a console block is run there;
what follows a command is its output, standard error included. An ellipsis stands for anything in a line,
and a line that is nothing else for any lines. A `serve --http` keeps running until the next one or the end
of its page, on a free port: the page's 8765 means that one. The README of an example has the example's files
around it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TO_FOLLOW = [ROOT / "README.md", ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]
TO_READ = sorted({*(ROOT / "docs").rglob("*.md")} - {*TO_FOLLOW})
# An example that serves tools is run by test_examples.
EXAMPLES = [
    page for page in sorted(ROOT.glob("examples/*/README.md")) if not (page.parent / "calls.jsonl").is_file()
]
PAGES = [*TO_FOLLOW, *(page for page in TO_READ if "```console" in page.read_text("utf-8")), *EXAMPLES]

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_LINE = re.compile(r"# (\S+\.(?:py|toml))\n")
_SHOWN_PORT = "8765"


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    line: str
    output: str

    @property
    def is_server(self) -> bool:
        return "serve --http" in self.line


def steps(page: Path) -> Iterator[File | Command]:
    for language, name, text in _BLOCK.findall(page.read_text("utf-8")):
        if language == "console":
            yield from _commands(text)
        elif name:
            yield File(name, text)
        elif named := _FILE_LINE.match(text):
            yield File(named[1], text)


def _commands(text: str) -> Iterator[Command]:
    before, *commands = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not before, "a console block starts with a command"
    for command in commands:
        # A backslash at the end of a line continues the command.
        match = re.match(r"((?:.*\\\n)*.*)\n", command)
        assert match is not None
        yield Command(match[1], command[match.end() :])


def matches(shown: str, actual: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(pattern, actual) is not None


class Terminal:
    """Runs a page's commands in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        commands = folder / "bin"
        commands.mkdir()
        _shim(commands / "portbook", f'exec "{sys.executable}" -m portbook "$@"')
        _shim(commands / "python", f'exec "{sys.executable}" "$@"')
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")}
        self._env["PATH"] = f"{commands}{os.pathsep}{self._env['PATH']}"
        self._port = _SHOWN_PORT
        self._server: subprocess.Popen[str] | None = None

    def do(self, step: File | Command) -> None:
        if isinstance(step, File):
            path = self.folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, "utf-8")
            return
        actual = self._start(step) if step.is_server else self._run(step)
        shown = step.output.replace(_SHOWN_PORT, self._port)
        assert matches(shown, actual), f"$ {step.line}\n-- shown\n{shown}\n-- actual\n{actual}"

    def close(self) -> None:
        """Stop the server as Ctrl-C does."""
        if self._server is not None:
            server, self._server = self._server, None
            server.send_signal(signal.SIGINT)
            try:
                rest, _ = server.communicate(timeout=30)
            finally:
                server.kill()
            assert server.returncode == 0, rest

    def _run(self, command: Command) -> str:
        if "curl " in command.line and shutil.which("curl") is None:
            pytest.skip("this page needs curl")
        ran = subprocess.run(
            ["sh", "-c", command.line.replace(_SHOWN_PORT, self._port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=self._env,
            timeout=60,
            text=True,
            check=False,
        )
        # The shell of a person starts the next prompt on a line of its own.
        return ran.stdout if ran.stdout.endswith("\n") or not ran.stdout else ran.stdout + "\n"

    def _start(self, command: Command) -> str:
        self.close()
        self._server = subprocess.Popen(
            ["sh", "-c", f"exec {command.line}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env={**self._env, "PORTBOOK_PORT": "0"},
            text=True,
        )
        assert self._server.stdout is not None
        lines = [self._server.stdout.readline() for _ in command.output.splitlines()]
        port = re.search(r"http://[^/ ]*:(\d+)/", "".join(lines))
        assert port is not None, lines
        self._port = port[1]
        return "".join(lines)


def _shim(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n", "utf-8")
    path.chmod(0o755)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.stem if page not in EXAMPLES else f"example-{page.parent.name}"
)
def test_a_page_shows_what_happens(page: Path, terminal: Terminal) -> None:
    if page in EXAMPLES:
        shutil.copytree(page.parent, terminal.folder, dirs_exist_ok=True)
    taken = list(steps(page))
    assert any(isinstance(step, Command) for step in taken), "a page to follow has something to run"
    for step in taken:
        terminal.do(step)


def test_the_readme_shows_a_toolset_and_both_doors() -> None:
    taken = list(steps(ROOT / "README.md"))
    lines = [step.line for step in taken if isinstance(step, Command)]
    assert [step.name for step in taken if isinstance(step, File)] == ["my_tools.py", "portbook.toml"]
    assert any("serve --stdio my_tools.py" in line for line in lines)
    assert any("serve --http my_tools.py" in line for line in lines)
    assert any(line.startswith("curl ") for line in lines)


@pytest.mark.parametrize(
    ("shown", "actual", "verdict"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ('{"ts":"…","n":1}\n', '{"ts":"now","n":1}\n', True),
        ('{"ts":"…","n":1}\n', '{"ts":"now","n":2}\n', False),
        ("a…\n", "a\nb\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\nd\n", "a\nb\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_an_ellipsis_is_the_only_thing_that_matches_anything(shown: str, actual: str, verdict: bool) -> None:
    assert matches(shown, actual) is verdict
