"""One file, replaced in steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.adopt.file_change import ChangedMeanwhile, FileChange, make, write_file


def test_a_new_file_has_the_permissions_of_the_change_and_an_old_one_its_own(tmp_path: Path) -> None:
    new, old = tmp_path / "a" / "new", tmp_path / "old"
    old.write_bytes(b"1")
    old.chmod(0o640)
    make(FileChange(new, None, b"2", 0o600))
    make(FileChange(old, b"1", b"2", 0o600, tmp_path / "backup"))
    assert [each.stat().st_mode & 0o777 for each in (new, old, tmp_path / "backup")] == [0o600, 0o640, 0o640]
    assert [each.read_bytes() for each in (new, old, tmp_path / "backup")] == [b"2", b"2", b"1"]


def test_a_backup_never_replaces_a_file(tmp_path: Path) -> None:
    path, backup = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"1")
    backup.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        make(FileChange(path, b"1", b"2", 0o600, backup))
    assert (path.read_bytes(), backup.read_bytes()) == (b"1", b"mine")


def test_a_file_that_appeared_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1")
    with pytest.raises(ChangedMeanwhile):
        make(FileChange(path, None, b"2", 0o600))
    assert path.read_bytes() == b"1"


def test_a_file_that_cannot_be_written_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_file(tmp_path / "folder", b"1", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
