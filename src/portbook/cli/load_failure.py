"""How a process ended that was to load changed files, where it cannot have said so itself."""

from __future__ import annotations

import signal

from portbook.cli.exit_codes import ExitCode

__all__ = ["ending_of", "load_failure"]


def load_failure(code: int) -> str | None:
    """Return what an exit code of `subprocess` tells; None where the process has said why it failed."""
    if code == int(ExitCode.INVALID):
        return None
    how = ending_of(code)
    return f"error: the process that loaded the changed files ended {how}; see what they do when imported"


def ending_of(code: int) -> str:
    """Return how a process ended, in words, from an exit code of `subprocess`."""
    return f"with exit code {code}" if code >= 0 else f"by signal {_name(-code)}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return str(number)
