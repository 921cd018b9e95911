"""Warnings at start: likely mistakes in the settings, with their places."""

from __future__ import annotations

from pathlib import Path

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
