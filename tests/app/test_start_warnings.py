"""Warnings at start: likely mistakes in the settings, with their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.app.start_warnings import blocked_by
from support.portbook_process import SAMPLE_TOOLS, run

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


def test_parameters_without_type_hints_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "from typing import Any\n"
        "from portbook import Context, Toolset\n"
        'toolset = Toolset("x")\n'
        "@toolset.tool\n"
        "def greet(name, times=1, *, context: Context) -> str:\n    return name * times\n"
        "@toolset.tool\n"
        "def keep(value: Any, label) -> str:\n    return label\n"
        "@toolset.tool\n"
        "def hinted(value: Any, label: str = '') -> str:\n    return label\n"
    )
    every = "so every value is accepted; add type hints, or Any where that is meant"
    checked = run("check", "tools.py", cwd=tmp_path)
    assert checked.code == 1
    assert checked.out.decode().splitlines() == [
        f"tools.py:4:1: warning: function greet: name and times have no type hints, {every}",
        f"tools.py:7:1: warning: function keep: label has no type hint, {every}",
    ]
    assert f"function keep: label has no type hint, {every}" in run("serve", "tools.py", cwd=tmp_path).err


@pytest.mark.parametrize("verb", ["serve --stdio", "call echo --toolset"])
def test_records_that_have_no_place_stop_a_start_and_it_says_what_to_do(tmp_path: Path, verb: str) -> None:
    (tmp_path / "portbook.toml").write_text('[audit]\nlog_dir = "file/below"\n')
    (tmp_path / "file").write_text("")
    stopped = run(*verb.split(), str(SAMPLE_TOOLS), cwd=tmp_path)
    assert (stopped.code, stopped.out) == (2, b"")
    assert stopped.err.startswith("portbook: error: portbook.toml:2:1: audit.log_dir cannot be written: ")
    assert "Not a directory; free space or correct its rights, or name a different folder" in stopped.err
