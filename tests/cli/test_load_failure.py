"""How a process ended that was to load changed files."""

from __future__ import annotations

from portbook.cli.reload_trial_and_watched_files import load_failure


def test_one_that_has_said_why_is_not_spoken_of() -> None:
    assert load_failure(2) is None


def test_any_other_end_is_told_with_its_code_or_signal() -> None:
    assert "with exit code 1;" in (load_failure(1) or "")
    assert "by signal SIGSEGV;" in (load_failure(-11) or "")
    assert "by signal 40;" in (load_failure(-40) or "")
