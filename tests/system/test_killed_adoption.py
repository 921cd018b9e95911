"""`portbook adopt` is killed at its steps: each file is old or new, and `--undo` gives all back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from support.client_home import ClientHome
from support.counts import count
from support.portbook_process import environment

# The command itself. From the first change of a file on, it counts what it does to the disk. Before the step
# of the given number it ends without a trace, as a kill does; at its end it says how many steps there were.
KILLED: Final = """
import atexit, os, sys
from pathlib import Path
from portbook.adopt.adoption_journal import AdoptionJournal
from portbook.cli.main import main

last, steps = int(sys.argv.pop(1)), 0

def counted(function):
    def step(*arguments, **options):
        global steps
        if steps == last:
            os._exit(9)
        steps += 1
        return function(*arguments, **options)
    return step

def armed(make):
    def counting(*arguments):
        for name in ("open", "mkdir", "replace", "fsync", "fchmod", "write"):
            setattr(os, name, counted(getattr(os, name)))
        Path.unlink = counted(Path.unlink)
        try:
            return make(*arguments)
        finally:
            sys.stderr.write(f"steps: {steps}\\n")
            os._exit(0)
    return counting

AdoptionJournal.make = armed(AdoptionJournal.make)
main()
"""
NEVER: Final = -1


def adopt_until(home: ClientHome, step: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(step), "adopt", "--yes"],
        cwd=home.path,
        env=environment(HOME=str(home.path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.soak("adoption kills")
@pytest.mark.covers("adopt.kill-door")
def test_a_killed_adoption_leaves_every_file_old_or_new_and_is_undone(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, "cursor", "codex", "goose")
    before = home.contents()
    whole = adopt_until(home, NEVER)
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stderr.rpartition("steps: ")[2])
    assert steps > 30
    after = home.contents()
    assert home.adopt("--undo").code == 0
    for step in range(0, steps, max(1, steps // count("adoption kills"))):
        assert adopt_until(home, step).returncode == 9, step
        for file in home.files():
            name = str(file.relative_to(tmp_path))
            assert file.read_bytes() in (before[name], after[name]), (step, name)
        undone = home.adopt("--undo")
        assert (undone.code, home.contents()) == (0, before), (step, undone.err)
