"""The guard: calls do not need more instructions than the committed figures say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import callgrind
from bench.callgrind import Missing
from bench.instructions import FIGURES, TOLERANCE, build, count, count_bare_loop


@pytest.mark.timeout(600)  # under valgrind everything takes fifty times as long
def test_a_call_needs_no_more_instructions_than_it_did() -> None:
    try:
        counted = count()
    except Missing as missing:
        pytest.skip(str(missing))
    assert len(counted) == 13
    committed = json.loads(FIGURES.read_text()).get(build())
    if committed is None:  # another build of Python or of its packages: no figure means anything
        bare = count_bare_loop()
        print({name: f"{number / bare:.1f} times a bare loop" for name, number in counted.items()})
        return
    assert counted.keys() == committed.keys()
    grown = {
        name: f"{number:,} instructions, {number / committed[name] - 1:+.1%}"
        for name, number in counted.items()
        if number > committed[name] * (1 + TOLERANCE)
    }
    assert not grown, "look for the cause, or run `python -m bench.instructions --update`"


def test_without_valgrind_one_line_says_what_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None: ...

    monkeypatch.setattr(callgrind.shutil, "which", nothing)
    with pytest.raises(Missing, match="instructions are not counted: install valgrind"):
        callgrind.callgrind(["true"])


def test_dumps_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import os, sys\n"
        "for line in sys.stdin:\n"
        "    os.getppid()\n"
        "    sum(range(10_000 if 'much' in line else 10))\n"
        "    print(line, end='', flush=True)\n"
    )
    chunks = [b'{"id":1}\n', b'{"id":2,"much":1}\n', b'{"id":3}\n']
    try:
        counts = callgrind.counts_between_marks([sys.executable, "-S", str(server)], tmp_path, chunks)
    except Missing as missing:
        pytest.skip(str(missing))
    assert len(counts) == 2
    assert counts[1] > 5 * counts[0]
