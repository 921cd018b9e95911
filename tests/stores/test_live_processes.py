"""Who lives: a lock on a file of one's own, which no death can keep."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.live_processes import Owner, folder_of
from support.portbook_process import child

_HOLDER = """
import sys
from pathlib import Path
from portbook.stores.live_processes import Owner

Owner(Path(sys.argv[1]), sys.argv[2]).hold()
print("held", flush=True)
sys.stdin.read()
"""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@contextlib.contextmanager
def holder(folder: Path, name: str) -> Iterator[None]:
    """Another process that holds a name, and is killed in the end."""
    with child(
        [sys.executable, "-c", _HOLDER, str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield


def test_an_owner_lives_until_it_lets_go(tmp_path: Path) -> None:
    one, other = Owner(tmp_path / "owners", "one"), Owner(tmp_path / "owners", "other")
    assert not other.lives("one")
    one.hold()
    one.hold()
    assert other.lives("one")
    one.release()
    assert not other.lives("one")
    one.release()


def test_an_owner_knows_that_it_lives_itself(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "owners", "one")
    assert owner.lives("one")
    assert not owner.lives(None)
    assert not owner.lives("../owners/one")


def test_who_looks_makes_no_files(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "owners", "one")
    owner.lives("other")
    owner.release()
    assert names(tmp_path) == set()


def test_the_files_are_nobody_elses_and_go_with_the_last_one(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "portbook.db")
    one, other = Owner(folder, "one"), Owner(folder, "other")
    one.hold()
    other.hold()
    assert names(folder) == {"one", "other"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "one").stat().st_mode) == 0o600
    one.release()
    assert names(folder) == {"other"}
    other.release()
    assert names(tmp_path) == set()


def test_a_killed_process_is_gone_and_what_it_left_is_swept_away(tmp_path: Path) -> None:
    owner = Owner(tmp_path, "one")
    with holder(tmp_path, "killed"):
        assert owner.lives("killed")
    assert names(tmp_path) == {"killed"}
    assert not owner.lives("killed")
    owner.hold()
    assert names(tmp_path) == {"one"}
    assert not owner.lives("killed")
    owner.release()


def test_a_process_that_lives_is_not_swept_away(tmp_path: Path) -> None:
    owner = Owner(tmp_path, "one")
    with holder(tmp_path, "alive"):
        owner.hold()
        assert owner.lives("alive")
        assert names(tmp_path) == {"alive", "one"}
        owner.release()


def test_who_was_swept_away_while_it_came_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, path = fcntl.flock, tmp_path / "one"
    swept: list[str] = []

    def sweeping(file: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX and not swept:  # just before the first lock is taken
            swept.append("one")
            path.unlink()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", sweeping)
    one = Owner(tmp_path, "one")
    one.hold()
    assert swept == ["one"]
    assert Owner(tmp_path, "other").lives("one")
    one.release()


def test_who_finds_the_folder_gone_makes_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    open_file = os.open

    def vanishing(path: Any, flags: int, mode: int = 0o777) -> int:
        if not opened:
            opened.append(path)
            (tmp_path / "owners").rmdir()
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", vanishing)
    one = Owner(tmp_path / "owners", "one")
    one.hold()
    assert Owner(tmp_path / "owners", "other").lives("one")
    one.release()


def test_nobody_is_declared_dead_where_it_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: Any) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", exhausted)
    assert Owner(tmp_path, "one").lives("other")


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "owners").touch()
    with pytest.raises(StoreError, match=r"owners: cannot be written: File exists"):
        Owner(tmp_path / "owners", "one").hold()


def test_in_memory_there_is_nobody_else() -> None:
    owner = Owner(None, "one")
    owner.hold()
    assert owner.lives("one")
    assert not owner.lives("other")
    owner.release()
