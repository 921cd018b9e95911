"""Warnings at start: likely mistakes in the settings, with their places."""

from __future__ import annotations

from pathlib import Path

from portbook.app.start_warnings import blocked_by
from support.portbook_process import run

WARNING = "portbook.toml:3:1: http.shop.files is not a folder; calls that name a file are refused"


def test_a_folder_for_files_that_is_none_is_warned_of(tmp_path: Path) -> None:
    settings = '[http.shop]\nbase_url = "https://shop.example"\nfiles = "uploads"\n'
    (tmp_path / "portbook.toml").write_text(settings)
    started = run("serve", "--stdio", cwd=tmp_path)
    assert started.code == 0
    assert WARNING in started.err
    (tmp_path / "uploads").mkdir()
    assert "http.shop.files" not in run("serve", "--stdio", cwd=tmp_path).err


def test_a_folder_that_can_be_made_is_not_blocked_and_a_file_in_the_way_blocks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert blocked_by(tmp_path / "a" / "b") is None
    assert blocked_by(tmp_path / "file" / "b") == tmp_path / "file"
