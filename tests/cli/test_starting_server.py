"""A server until it is ready: what it tells, and that nobody waits for one that tells nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.cli.serve_reload import Ready, StartingServer, tell_ready

PATIENCE_S = 30.0
TAKEN = "import os; listener, pipe, lifeline = map(int, os.environ['_PORTBOOK_TAKE_OVER'].split(','))\n"
TELLS = (
    "from pathlib import Path; from portbook.cli.serve_reload import Ready, tell_ready\n"
    "tell_ready(pipe, Ready([Path('/x') / str(n) for n in range(20_000)], {'tool': 'a'}, {}))\n"
)


@pytest.fixture
def lifeline() -> Iterator[int]:
    ours, theirs = os.pipe()
    yield ours
    os.close(ours)
    os.close(theirs)


def starting(lifeline: int, *lines: str) -> StartingServer:
    return StartingServer([sys.executable, "-c", "".join((TAKEN, *lines))], lifeline, lifeline)


def test_it_tells_its_files_and_lists_however_many_there_are(lifeline: int) -> None:
    server = starting(lifeline, TELLS, "os.read(lifeline, 1)")
    while not server.has_told(PATIENCE_S):
        assert server.process.poll() is None
    ready = server.settle()
    assert ready is not None
    assert (len(ready.files), ready.lists) == (20_000, {"tool": "a"})
    server.process.kill()
    server.process.wait()


def test_one_that_ends_without_a_word_is_not_ready(lifeline: int) -> None:
    server = starting(lifeline, "raise SystemExit(2)")
    assert server.has_told(PATIENCE_S)
    assert server.settle() is None
    assert server.process.returncode == 2


def test_one_that_says_nothing_holds_nobody_up_and_can_be_given_up(lifeline: int) -> None:
    server = starting(lifeline, "os.read(lifeline, 1)")
    assert not server.has_told(0)
    server.give_up()
    assert server.process.wait(PATIENCE_S) != 0


def test_what_is_told_is_what_is_read(lifeline: int) -> None:
    ours, theirs = os.pipe()
    ready = Ready([Path("/a")], {"tool": "x"}, {"server.port": 1, "server.socket": None})
    tell_ready(theirs, ready)
    server = starting(lifeline, "raise SystemExit(0)")
    os.dup2(ours, server._pipe)  # pyright: ignore[reportPrivateUsage] # the end that it reads
    os.close(ours)
    while not server.has_told(PATIENCE_S):
        pass
    assert server.settle() == ready
    server.process.wait()
