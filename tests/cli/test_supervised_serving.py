"""The process that supervises listens, starts workers like itself, and closes the socket after them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from portbook.cli import worker_supervisor
from portbook.settings import load_settings


def test_workers_are_started_word_for_word_like_the_process_that_supervises_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: dict[str, Any] = {}

    class Recorded:
        def __init__(self, listener: int, command: list[str], count: int, **told: Any) -> None:
            made.update(listener=listener, command=command, count=count, **told)

        def run(self) -> int:
            os.fstat(made["listener"])  # it is open
            made["on_ready"]("3 tools")
            made["on_stop"]()
            return 7

    monkeypatch.setattr(worker_supervisor, "WorkerSupervisor", Recorded)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-I", "-m", "portbook", "serve", "--http"])
    settings = load_settings(None, {}, {"server.port": 0}, tmp_path)
    assert worker_supervisor.serve_with_workers(settings, 2) == 7
    assert made["command"] == [sys.executable, "-I", "-m", "portbook", "serve", "--http"]
    assert made["count"] == 2
    assert capsys.readouterr().err.startswith(
        "portbook: serving 3 tools with 2 workers; open http://127.0.0.1:"
    )
