"""The reaper: the server ends with its lifeline, and so does all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portbook.upstreams import process_reaper

HANGING = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
time.sleep(99)
"""
# One that forks and ends at once, for a minute: whoever looks for it finds the number of one that is no more.
FLEEING = """
import os, sys, time
until = time.monotonic() + 60
if os.fork():
    sys.stdin.read(1)
    sys.exit()
os.setsid()
os.close(0)
print('up', flush=True)
while time.monotonic() < until:
    if os.fork():
        os._exit(0)
    time.sleep({pause})
"""
# The reaper ends everything with the server, so the server stays until the process that left it has spoken.
LEAVING = """
import os, sys
reading, writing = os.pipe()
if os.fork():
    os.read(reading, 1)
    sys.exit()
os.setsid()
print(os.getpid(), flush=True)
os.write(writing, b'.')
"""


def start(*command: str, tasks: int = 0) -> tuple[subprocess.Popen[bytes], int]:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", process_reaper.__file__, str(reading), str(tasks), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        pass_fds=(reading,),
    )
    os.close(reading)
    return process, writing


def finish(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize(("code", "status"), [("pass", 0), ("raise SystemExit(7)", 7), (KILLED, 128 + 9)])
def test_the_status_of_the_server_is_the_reapers(code: str, status: int) -> None:
    process, lifeline = start(sys.executable, "-c", code)
    assert finish(process)[0] == status
    os.close(lifeline)


def test_a_program_that_does_not_exist_is_told() -> None:
    process, lifeline = start("/no/such/program")
    status, errors = finish(process)
    assert (status, errors) == (127, b"/no/such/program cannot be started: No such file or directory\n")
    os.close(lifeline)


def test_a_server_that_ignores_sigterm_is_killed_with_its_lifeline() -> None:
    process, lifeline = start(sys.executable, "-c", HANGING)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    os.close(lifeline)
    finish(process)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux shows the processes below another")
@pytest.mark.parametrize("pause", [0, 0.001, 0.005])
def test_a_process_that_forks_and_ends_again_and_again_does_not_escape(pause: float) -> None:
    process, lifeline = start(sys.executable, "-c", FLEEING.format(pause=pause))
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.stdin.write(b".")
    finish(process)  # all that could write to its output have ended
    os.close(lifeline)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux shows the processes below another")
def test_a_process_that_left_its_group_and_lost_its_parent_is_found() -> None:
    process, lifeline = start(sys.executable, "-c", LEAVING + HANGING)
    assert process.stdout is not None
    orphan = int(process.stdout.readline())
    finish(process)
    os.close(lifeline)
    until = time.monotonic() + 10
    while Path(f"/proc/{orphan}").is_dir() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{orphan}").is_dir()


def test_the_reaper_ends_when_it_is_told_to() -> None:
    process, lifeline = start(sys.executable, "-c", "import time; print('up', flush=True); time.sleep(99)")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    finish(process)
    os.close(lifeline)


def test_a_server_with_too_many_threads_is_ended_and_says_why() -> None:
    threads = (
        "import threading, time; [threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(9)]"
    )
    process, lifeline = start(sys.executable, "-c", threads, tasks=5)
    _, errors = finish(process)
    assert b"more processes and threads than its sandbox allows" in errors
    os.close(lifeline)
