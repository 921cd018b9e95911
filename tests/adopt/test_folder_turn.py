"""Processes that change one folder take turns, also where one of them removes the folder."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from portbook.adopt.file_change import folder_turn


def is_locked(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_a_turn_creates_its_folder_and_ends_with_its_block(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with folder_turn(folder):
        assert is_locked(folder)
    assert not is_locked(folder)
    assert list(folder.iterdir()) == []


def test_who_waited_for_a_folder_that_was_removed_locks_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    waits = threading.Event()
    flock = fcntl.flock
    found: list[bool] = []

    def told(descriptor: int, kind: int) -> None:
        waits.set()
        flock(descriptor, kind)

    def wait() -> None:
        with folder_turn(folder):
            found.append(is_locked(folder))

    with folder_turn(folder):
        monkeypatch.setattr("portbook.adopt.file_change.fcntl.flock", told)
        second = threading.Thread(target=wait)
        second.start()
        assert waits.wait(30)
        folder.rmdir()
    second.join(30)
    assert found == [True]
