"""The files that a server is made from, and what tells a changed one."""

from __future__ import annotations

import os
import time
from pathlib import Path

from portbook.cli.list_of_watched_files import after_failure, stamps_of, watched_files, without_changes_since
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


def test_after_a_failure_modules_beside_and_one_folder_below_are_watched_too(tmp_path: Path) -> None:
    known = tmp_path / "tools.py"
    for path in (known, tmp_path / "new.py", tmp_path / "words" / "spoken.py", tmp_path / "a" / "b" / "c.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    names = {path.name for path in after_failure(stamps_of([known]))}
    assert names == {"tools.py", "new.py", "spoken.py"}


def test_after_a_failure_a_change_of_a_known_file_still_counts(tmp_path: Path) -> None:
    known = tmp_path / "tools.py"
    known.touch()
    tried = stamps_of([known])
    known.write_text("changed while it was tried")
    assert after_failure(tried) == tried != stamps_of([known])


def test_a_file_that_changed_while_it_was_loaded_counts_as_changed(tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    early.touch()
    os.utime(early, ns=(1, 1))
    started = time.time_ns() - 1_000_000_000
    late.touch()
    stamps = stamps_of([early, late])
    assert without_changes_since(started, stamps) == {early: stamps[early], late: None}
