"""A trial: what it says where it fails, and that it ends with whoever waits for it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from portbook.cli.reload_trial_and_watched_files import (
    TRIAL,
    after_failure,
    is_trial,
    stamps_of,
    try_to_load,
    watched_files,
    without_changes_since,
)
from support.settings_files import load


def tried(code: str) -> str | None:
    return asyncio.run(try_to_load([sys.executable, "-c", code]))


def test_a_trial_that_succeeds_says_nothing() -> None:
    assert tried("import sys; print('x'); print('warning', file=sys.stderr)") is None


def test_a_trial_that_fails_says_why() -> None:
    assert tried("import sys; print('why', file=sys.stderr); sys.exit(2)") == "why\n"


def test_a_trial_that_ends_without_a_word_is_told_of() -> None:
    assert (tried("import os; os._exit(7)") or "").startswith("portbook: error: the process that loaded")
    assert "ended with exit code 7" in (tried("import os; os._exit(7)") or "")
    assert "ended by signal SIGKILL" in (
        tried("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") or ""
    )


def test_its_process_knows_that_it_is_one_and_what_it_starts_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (
        tried("from portbook.cli.reload_trial_and_watched_files import is_trial; assert is_trial()") is None
    )
    monkeypatch.setenv(TRIAL, "1")
    assert (is_trial(), is_trial(), TRIAL in os.environ) == (True, False, False)


def test_a_trial_that_is_cancelled_ends(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    code = f"import os, time; open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    async def cancel() -> None:
        trial = asyncio.create_task(try_to_load([sys.executable, "-c", code]))
        while not (begun.exists() and begun.read_text()):
            await asyncio.sleep(0.01)
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial

    asyncio.run(cancel())
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


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
