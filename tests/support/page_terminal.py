"""Runs what a page of the docs shows, as its reader would.

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

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_LINE = re.compile(r"# (\S+\.(?:py|toml))\n")
_SHOWN_PORT = "8765"
# Of this environment, not of the reader's; pytest would take two seconds to import them.
_OTHER_PLUGINS = ("anyio", "hypothesispytest", "platformdirs", "schemathesis", "timeout", "xdist")


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
    """Runs a page's commands in one folder, with a program `portbook`."""

    def __init__(self, folder: Path, portbook: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        commands = folder / "bin"
        commands.mkdir()
        (commands / "portbook").symlink_to(portbook)
        _shim(commands / "python", f'exec "{sys.executable}" "$@"')
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")}
        self._env["PATH"] = f"{commands}{os.pathsep}{self._env['PATH']}"
        self._env["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in _OTHER_PLUGINS)
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
