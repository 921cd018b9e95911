"""The command: verbs imported when they are asked for, and what the system refuses said in one line."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.portbook_process import PORTBOOK, TOOLSET, child, environment, invoke, run


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serve --stdio <&-", "standard input is closed"),
        ("serve --stdio >&-", "standard output is closed"),
        ("tools >&-", "standard output is closed"),
        ("tools >/dev/full", "No space left on device"),
        ("--help >/dev/full", "No space left on device"),
    ],
)
def test_streams_that_cannot_be_used_are_said_in_one_line(tmp_path: Path, command: str, said: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m portbook {command}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--version"], b""),
        (["--help"], b""),
        (["serve", "--stdio"], invoke("docs.search", {"query": "boundary"}) + b"\n"),
    ],
)
def test_heavy_libraries_are_not_imported_where_nothing_needs_them(
    tmp_path: Path, arguments: list[str], stdin: bytes
) -> None:
    script = (
        "import sys\n"
        "from portbook.cli.main import cli\n"
        f"try: cli({arguments!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'rich', 'starlette', 'uvicorn', 'uvloop'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=stdin, capture_output=True, cwd=tmp_path, env=environment()
    )
    assert b"heavy: []" in done.stderr
    assert not stdin or b'"hits"' in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("serv", "there is no command 'serv'; did you mean serve?"),
        ("zzz", "there is no command 'zzz'; `portbook --help` lists the commands"),
    ],
)
def test_an_unknown_command_gets_a_suggestion(tmp_path: Path, given: str, said: str) -> None:
    done = run(given, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err


SLEEPY = """
import sys
import time

from portbook import Toolset

toolset = Toolset("sleepy")

@toolset.tool(effect="read")
def sleep() -> None:
    print("asleep", file=sys.stderr, flush=True)
    time.sleep(3600)
"""


def test_ctrl_c_ends_a_call_quietly_with_its_own_code(tmp_path: Path) -> None:
    (tmp_path / "sleepy.py").write_text(SLEEPY)
    with child(
        [*PORTBOOK, "call", "sleep", "--toolset", "sleepy.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"asleep\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, err.strip()) == (b"", b"")


def test_an_unknown_approval_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[policy]\napproval = "always"\n')
    done = run("call", "echo", "text=a", "--approval", "zzz", *TOOLSET, cwd=tmp_path)
    assert done.code == 3
    assert done.err.splitlines()[1:] == ["portbook:   approval_id: zzz", "portbook:   why: unknown"]
