"""Problems of programs: an exit status, a signal, or what standard error says. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.envelope.problems import EXECUTION_FAILED, Problem, Scalar

__all__ = ["exit_problem", "stderr_problem"]

# The end of standard error is kept, because programs report their error last.
_MAX_STDERR: Final = 2000


def exit_problem(status: int, stderr: str = "") -> Problem:
    """Return the problem of a program that exited with `status`; as in Python, negative for a signal."""
    said: dict[str, Scalar] = {"stderr": stderr[-_MAX_STDERR:]} if stderr else {}
    if status < 0:
        message = f"Tool execution was ended by signal {-status}."
        return Problem(EXECUTION_FAILED, message, {"signal": -status, **said})
    message = f"Tool execution failed with exit code {status}."
    return Problem(EXECUTION_FAILED, message, {"exit_code": status, **said})


def stderr_problem(stderr: str) -> Problem:
    """Return the problem of a tool that failed, where only its standard error is known."""
    message = "Tool execution failed; standard error says why."
    return Problem(EXECUTION_FAILED, message, {"stderr": stderr[-_MAX_STDERR:]})
