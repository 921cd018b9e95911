"""Converts a program's output and exit status to an outcome for an envelope. Pure: no I/O.

JSON objects, arrays and strings are parsed. All other output is text, kept unchanged: only its reader knows
whether a bare `1.50` is a number or a price. Bytes that are not UTF-8 are encoded as base64.
"""

from __future__ import annotations

import base64
from typing import Final, Literal, NamedTuple

from portbook.envelope.errors_and_warnings import Problem, exit_problem, own_problems
from portbook.envelope.result_put_into_envelope import Failure, is_envelope
from portbook.errors import Refused
from portbook.model import JSON
from portbook.wire.parsing import parse

__all__ = ["BASE64", "MAX_OUTPUT_BYTES", "NOT_JSON", "TOO_LARGE", "Form", "Ran", "outcome_of"]

# The format of a program's output; "auto" detects it.
Form = Literal["auto", "json", "text"]

NOT_JSON: Final = "ADAPTER.OUTPUT.NOT_JSON"
BASE64: Final = "ADAPTER.OUTPUT.BASE64"
TOO_LARGE: Final = "ADAPTER.OUTPUT.TOO_LARGE"

# More than one JSON document needs; a program that never stops must not take all memory.
MAX_OUTPUT_BYTES: Final = 64 << 20


class Ran(NamedTuple):
    """How a program ended, and its output."""

    status: int
    """Its exit status; as in Python, negative for a signal."""
    output: bytes = b""
    stderr: bytes = b""
    problem: Problem | None = None
    """Why it did not run, or was stopped."""


def outcome_of(ran: Ran, form: Form = "auto") -> tuple[JSON | Failure, tuple[Problem, ...]]:
    """Return the outcome for the envelope, and warnings.

    The problem of a failure is the first of: why it was stopped, the errors that it reports itself (on
    standard output, then on standard error), why its output cannot be parsed, its exit status.
    """
    result, flaw, warnings = _read(ran.output, form)
    if is_envelope(result) or (ran.status == 0 and ran.problem is None and flaw is None):
        return result, warnings
    if ran.problem is not None:
        problems = (ran.problem,)
    else:
        said = ran.stderr.decode(errors="replace")
        problems = own_problems(result) or own_problems(_parsed(ran.stderr))
        problems = problems or (flaw or exit_problem(ran.status, said),)
    return Failure(problems, result if ran.output else None), warnings


def _read(output: bytes, form: Form) -> tuple[JSON, Problem | None, tuple[Problem, ...]]:
    """Return an output as JSON, its problem, and warnings."""
    flaw = None
    if form == "json" or (form == "auto" and output.lstrip()[:1] in (b"{", b"[", b'"')):
        try:
            return parse(output.strip()), None, ()
        except Refused as refused:
            if form == "json":
                flaw = Problem(NOT_JSON, f"The output is not JSON: {refused.findings[0].message}.")
    try:
        return output.decode(), flaw, ()
    except UnicodeDecodeError:
        warning = Problem(BASE64, "The output is not UTF-8; the result is its base64.")
        return base64.b64encode(output).decode(), flaw, (warning,)


def _parsed(text: bytes) -> JSON:
    try:
        return parse(text.strip())
    except Refused:
        return None
