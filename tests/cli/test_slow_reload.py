"""The operator hears once that changed files take long."""

from __future__ import annotations

import time

import pytest

from portbook.cli.reload_trial_and_watched_files import SlowReload


def test_it_is_told_once_and_not_too_early(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    slow = SlowReload()
    now = 102.9
    slow.tell_once()
    assert capsys.readouterr().err == ""
    now = 103.0
    slow.tell_once()
    slow.tell_once()
    assert capsys.readouterr().err.count("still loading") == 1
