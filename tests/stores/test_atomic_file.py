"""A file that is replaced: whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.stores.lock_file import write_atomically


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    write_atomically(target, b"old")
    assert target.stat().st_mode & 0o777 == 0o644
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"folder"):
        write_atomically(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "it.json"]
    assert target.read_bytes() == b"old"
