"""Instructions are counted as the processor executes them, one step at a time."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from bench import single_steps
from bench.single_steps import NotTraced, count_steps, steps_of


def test_more_work_takes_more_steps_and_each_chunk_is_counted_alone(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    if 'much' in line:\n"
        "        sum(range(500))\n"
        "    print(line, end='', flush=True)\n"
    )
    little, much = b'{"id":1}\n', b'{"id":1,"much":1}\n'
    try:
        first, second, third = steps_of(["-S", str(server)], tmp_path, [little, much], [little, much, little])
    except NotTraced as reason:
        pytest.skip(str(reason))
    # On a busy machine, the last steps of a chunk may be counted with the next one.
    assert max(first, third) < 2 * min(first, third)
    assert second > 1.2 * max(first, third)


def test_what_cannot_be_counted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NotTraced, match="counted on Linux"):
        steps_of(["-S", "-c", "input()"], tmp_path, [], [])


def test_what_a_read_takes_is_shared_by_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(*_: object) -> list[int]:
        return [640 + 2 * 1_000, 640 + 10 * 1_000]

    monkeypatch.setattr(single_steps, "steps_of", steps)
    assert count_steps() == 1_010


def test_a_server_that_ends_is_told_of(tmp_path: Path) -> None:
    server = "import os, sys\nprint(sys.stdin.readline(), flush=True)\nsys.stdin.readline()\nos._exit(3)\n"
    with pytest.raises(NotTraced) as told:
        steps_of(["-S", "-c", server], tmp_path, [b'{"id":1}\n'], [b'{"id":2}\n'])
    if os.strerror(errno.EPERM) in str(told.value):
        pytest.skip(str(told.value))
    assert str(told.value) == "the server ended"
