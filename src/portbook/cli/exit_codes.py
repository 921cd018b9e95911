"""The one table of exit codes: what the command line tells the shell. Pure: no I/O.

Every verb exits with one of these. The `exit` column of `errors.REASONS` has the codes of calls that end
without a result, and a test requires each of them to be in this table.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

__all__ = ["ExitCode", "exit_code_of_program"]

# A shell's code for a program that a signal ended is this, plus the number of the signal.
_SIGNALLED: Final = 128


class ExitCode(IntEnum):
    """Every exit code, and what it means."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Make a member whose number is `code`."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    SUCCESS = 0, "The command succeeded. A check found nothing wrong."
    FAILURE = 1, "The call failed, a check found a problem or a difference, or an id or name is unknown."
    INVALID = 2, "The options, arguments, settings or files are invalid or cannot be read."
    REFUSED = (
        3,
        (
            "The call is not allowed: no valid key, denied by policy, or not approved. "
            "From `portbook diff --schema`: neither a break nor a proof was found."
        ),
    )
    UNKNOWN = 4, "No such tool, resource, prompt, method, session or approval."
    INVALID_OUTPUT = 5, "The tool returned a result that its output schema does not allow."
    CANNOT_START = 126, "From `portbook wrap`: the program exists and could not be started."
    NOT_FOUND = 127, "From `portbook wrap`: the program was not found."
    INTERRUPTED = 130, "Ctrl-C ended the command."
    PIPE_CLOSED = 141, "The reader of standard output closed it early, as `head` does."
    TERMINATED = 143, "A second SIGTERM ended the server, which did not wait for its calls."


def exit_code_of_program(status: int) -> int:
    """Return the exit code for a program's `status`, which is negative where a signal ended it."""
    return status if status >= 0 else _SIGNALLED - status
