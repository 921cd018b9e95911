"""What tests start as a fork is, from inside and outside, as what Python starts anew."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from portbook.cli.main import cli
from support import forked_process, stand_in
from support.forked_process import REAL_STARTS, ForkedProcess
from support.leftover_processes import PROC
from support.page_terminal import Command, steps
from support.portbook_process import PORTBOOK, ROOT, environment
from support.stand_in import portbook_program

pytestmark = pytest.mark.skipif(not forked_process.is_known_machine(), reason="nothing is forked here")

# A toolset that writes down what it finds, and then ends as the last argument says.
PROBE = """
import atexit, json, os, random, signal, sys, threading

def ignored():
    return [each for each in range(1, 32) if signal.getsignal(each) is signal.SIG_IGN]

found = {
    "argv": sys.argv[1:],
    "program": sys.argv[0],
    "orig_argv": sys.orig_argv,
    "path": sys.path,
    "main": vars(sys.modules["__main__"]).get("__file__"),
    "spec": vars(sys.modules["__main__"])["__spec__"].name,
    "flags": str(sys.flags),
    "xoptions": sys._xoptions,
    "warnings": sys.warnoptions,
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "session": os.getsid(0) == os.getpid(),
    "group": os.getpgid(0) == os.getpgid(os.getppid()),
    "parent": os.getppid(),
    "number": os.getpid(),
    "threads": [thread.name for thread in threading.enumerate()],
    "mask": sorted(int(each) for each in signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "ignored": ignored(),
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "umask": os.umask(0o22),
    "trace": [sys.gettrace(), sys.getprofile(), threading.gettrace()],
    "streams": [
        [each.name, each.mode, each.encoding, each.errors, each.newlines, each.line_buffering,
         each.write_through, each.fileno(), each.isatty(), each.buffer.name, each.buffer.mode,
         type(each.buffer).__name__]
        for each in (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    ],
}
with open(os.environ["FOUND"], "w") as file:
    json.dump(found, file)
atexit.register(print, "at the end", file=sys.stderr)
END
"""


def started(folder: Path, end: str, *, env: dict[str, str] | None = None, **options: Any) -> Any:
    """What a process finds, and what its parent sees of its end."""
    (folder / "probe.py").write_text(PROBE.replace("END", end))
    given = environment(FOUND=str(folder / "found.json"), **(env or {}))
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ForkedProcess(
        [*PORTBOOK, "tools", "probe.py"], cwd=folder, env=given, **{**streams, **options}
    ) as process:
        out, err = process.communicate(timeout=60)
    assert process.is_forked is (REAL_STARTS not in os.environ and "PYTHONIOENCODING" not in given)
    found = json.loads((folder / "found.json").read_text())
    assert found.pop("number") == process.pid
    return {**found, "out": out, "err": err, "code": process.returncode}


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start a process both ways, and return what is found."""

    def start(end: str = "", **options: Any) -> tuple[Any, Any]:
        monkeypatch.delenv(REAL_STARTS, raising=False)
        forked = started(tmp_path, end, **options)
        monkeypatch.setenv(REAL_STARTS, "1")
        return forked, started(tmp_path, end, **options)

    return start


@pytest.mark.parametrize(
    "options", [{}, {"start_new_session": True}, {"env": {"OWN": "ä\udcff"}}, {"stderr": subprocess.STDOUT}]
)
def test_a_forked_process_finds_what_a_new_one_finds(both: Any, options: dict[str, Any]) -> None:
    forked, anew = both(**options)
    assert forked == anew
    assert forked["parent"] == os.getpid()


@pytest.mark.parametrize(
    "end",
    [
        "os._exit(9)",
        "os.abort()",
        "signal.raise_signal(signal.SIGTERM)",
        "signal.raise_signal(signal.SIGINT)",
        "threading.Thread(target=lambda: (threading.main_thread().join(), sys.stderr.write('last'))).start()",
        "sys.stdout.write('unflushed'); raise SystemExit('a word')",
        "os.close(1); sys.stdout.write('nowhere')",
        "class Kept:\n    def __del__(self, write=os.write): write(2, b'gone')\nkept = Kept()",
        (
            "class Kept:\n    def __del__(self): os.write(2, b'gone')\n"
            "def run():\n    kept = Kept()\n    raise SystemExit(3)\nrun()"
        ),
    ],
)
def test_a_forked_process_ends_as_a_new_one_ends(both: Any, end: str) -> None:
    forked, anew = both(end)
    assert forked == anew


def test_what_a_variable_tells_python_is_told_to_a_new_process(both: Any) -> None:
    forked, anew = both(env={"PYTHONIOENCODING": "latin-1", "PYTHONDONTWRITEBYTECODE": "1"})
    assert forked == anew
    assert forked["streams"][0][2] == "iso8859-1"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stand-in; no verb was started yet."""
    monkeypatch.delenv(REAL_STARTS, raising=False)
    monkeypatch.setattr(stand_in, "_started", set[str]())
    with portbook_program(tmp_path) as program:
        yield program


@contextlib.contextmanager
def started_by(program: Path, folder: Path, end: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that starts the probe, which handles one signal, and says a line before its end."""
    ready = "signal.signal(signal.SIGUSR1, lambda *_: os._exit(7)); os.write(2, b'ready\\n')"
    (folder / "probe.py").write_text(PROBE.replace("END", f"{ready}\n{end}"))
    with subprocess.Popen(
        [program, "tools", "probe.py", "ä\udcff", ""],
        cwd=folder,
        env=environment(FOUND=str(folder / "found.json"), OWN="a=b\nä\udcff"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # what a line is read ahead of would be lost to `communicate`
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def seen_through(program: Path, folder: Path, end: str, *signals: int) -> tuple[Any, bool]:
    """What the probe finds and what is seen of its end; and whether it was the process that was started."""
    with started_by(program, folder, end) as process:
        for number in signals:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    found = json.loads((folder / "found.json").read_text())
    is_it = found.pop("number") == process.pid
    assert found.pop("parent") == os.getpid()
    return {**found, "out": out, "err": err, "code": process.returncode}, is_it


# Python may be about to sleep when a signal comes, and would hear of it only afterwards.
WAITING = "import time\nwhile True: time.sleep(0.05)"


@pytest.mark.parametrize(
    ("end", "signals"),
    [
        ("", ()),
        ("os._exit(9)", ()),
        ("signal.raise_signal(signal.SIGTERM)", ()),
        ("signal.raise_signal(signal.SIGKILL)", ()),
        (WAITING, (signal.SIGTERM,)),
        (WAITING, (signal.SIGINT,)),
        (WAITING, (signal.SIGUSR1,)),
    ],
)
def test_the_stand_in_for_the_program_is_as_the_program(
    program: Path, tmp_path: Path, end: str, signals: tuple[int, ...]
) -> None:
    anew, is_first_the_program = seen_through(program, tmp_path, end, *signals)
    forked, is_second_the_program = seen_through(program, tmp_path, end, *signals)
    assert forked == anew
    assert is_first_the_program
    assert not is_second_the_program


def test_what_a_killed_stand_in_started_ends_with_it(program: Path, tmp_path: Path) -> None:
    with started_by(program, tmp_path, ""):
        """The first start of a verb is a real one."""
    with started_by(program, tmp_path, "signal.pause()"):
        number = str(json.loads((tmp_path / "found.json").read_text())["number"])
    await_end(number)


def test_what_a_stand_in_started_can_close_its_streams_before_it_ends(program: Path, tmp_path: Path) -> None:
    with started_by(program, tmp_path, ""):
        """The first start of a verb is a real one."""
    with started_by(program, tmp_path, "os.closerange(0, 64); signal.pause()") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == process.stderr.read() == b""
        assert process.poll() is None


# What no page that is followed shows, and how to start it.
UNSHOWN = {"completion": ("bash",), "init": (), "review": (), "store": ("--help",)}


def test_python_itself_starts_every_verb_here_or_on_a_page(tmp_path: Path) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    lines = [step.line for page in pages for step in steps(page) if isinstance(step, Command)]
    shown = set(re.findall(r"\bportbook (\w+)", "\n".join(lines)))
    assert {*cli.list_commands(click.Context(cli))} - shown <= UNSHOWN.keys()
    for verb, options in UNSHOWN.items():
        done = subprocess.run(
            [*PORTBOOK, verb, *options], cwd=tmp_path, env=environment(), capture_output=True, timeout=60
        )
        assert done.returncode == 0, done.stderr


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from support import forked_process
from support.portbook_process import PORTBOOK
forked_process.ForkedProcess([*PORTBOOK, "--version"]).wait()
print(forked_process.server_number(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_server_ends_with_the_process_that_it_forks_for(tmp_path: Path) -> None:
    tests = str(Path(forked_process.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tests], capture_output=True, timeout=60, env=environment(), text=True
    )
    assert done.returncode == -signal.SIGKILL
    said, number = done.stdout.splitlines()
    assert said.startswith("portbook ")
    await_end(number)


def await_end(number: str) -> None:
    until = time.monotonic() + 30
    with contextlib.suppress(OSError):  # it ended while its command was read
        while (PROC / number / "cmdline").read_bytes():
            assert time.monotonic() < until
            time.sleep(0.05)
