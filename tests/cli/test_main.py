"""The command line itself: Ctrl-C, and what it says of errors."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.portbook_process import PORTBOOK, TOOLSET, child, environment, invoke, run


@pytest.mark.parametrize(("is_ignored", "ended"), [(False, -signal.SIGINT), (True, 0)])
@pytest.mark.parametrize(
    ("imported", "asked"), [("click", ["--version"]), ("jsonschema_rs", ["serve", "--help"])]
)
def test_ctrl_c_while_the_command_line_is_imported_says_nothing(
    tmp_path: Path, imported: str, asked: list[str], is_ignored: bool, ended: int
) -> None:
    # A thing that it or its verb imports presses it, and imports the real one where that changed nothing.
    (tmp_path / f"{imported}.py").write_text(
        "import os, signal, sys\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.path.remove(os.path.dirname(__file__))\n"
        f"del sys.modules['{imported}']\n"
        f"import {imported}\n"
        f"sys.modules['{imported}'] = {imported}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "portbook", *asked],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(tmp_path)},
        timeout=60,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if is_ignored else None,
    )
    assert (done.returncode, done.stderr) == (ended, "")


def test_a_server_does_not_import_email_for_a_date_that_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "import sys\nfrom portbook import Toolset\ntoolset = Toolset('mail')\n"
        "@toolset.tool(effect='read')\n"
        "def mail(address: str) -> dict[str, str]:\n"
        "    before = 'email.utils' in sys.modules\n"
        "    from email.utils import parseaddr\n"
        "    return {'before': str(before), 'address': parseaddr(address)[1]}\n"
    )
    call = {"name": "mail", "arguments": {"address": "A <a@b.example>"}}
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    said = [("initialize", client), ("tools/call", call)]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(said, start=1)
    ]
    done = subprocess.run(
        [*PORTBOOK, "serve", "--stdio", "tools.py"],
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["result"]["structuredContent"] == {"before": "False", "address": "a@b.example"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serve --stdio <&-", "standard input is closed"),
        ("serve <&-", "standard input is closed"),
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
