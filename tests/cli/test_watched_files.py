"""The files that a server is made from, and what tells a changed one."""

from __future__ import annotations

import os
from pathlib import Path

from portbook.cli.watched_files import stamps_of, watched_files
from support.settings_files import load


def test_settings_toolsets_and_documents_are_watched_and_addresses_are_not(tmp_path: Path) -> None:
    text = (
        '[python]\ntoolsets = ["tools.py"]\n'
        '[http.a]\nopenapi = "a.json"\n[http.b]\nopenapi = ["b.json", "https://b.example/c.json"]\n'
    )
    names = [path.name for path in watched_files(load(tmp_path, text))]
    assert names == ["a.json", "b.json", "portbook.lock", "portbook.toml", "tools.py"]


def test_a_stamp_tells_of_changed_new_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "x"
    missing = stamps_of([path])
    path.write_text("a")
    written = stamps_of([path])
    os.utime(path, ns=(1, 1))
    assert missing == {path: None}
    assert len({str(missing), str(written), str(stamps_of([path]))}) == 3
