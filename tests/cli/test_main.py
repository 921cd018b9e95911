"""The command: verbs imported when they are asked for, and what the system refuses said in one line."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.portbook_process import environment, invoke


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
