"""A trial: what it says where it fails, and that it ends with whoever waits for it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from portbook.cli.reload_trial import TRIAL, is_trial, try_to_load


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
    assert tried("from portbook.cli.reload_trial import is_trial; assert is_trial()") is None
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
