"""Whether files can be written below a folder."""

from __future__ import annotations

from pathlib import Path

from portbook.cli.ready_file import blocked_by


def test_a_folder_that_can_be_made_is_not_blocked_and_a_file_in_the_way_blocks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert blocked_by(tmp_path / "a" / "b") is None
    assert blocked_by(tmp_path / "file" / "b") == tmp_path / "file"
