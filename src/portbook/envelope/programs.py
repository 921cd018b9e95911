"""What a program printed and how it ended, as an outcome to put into an envelope. Pure: no I/O.

JSON objects, arrays and strings are taken for what they are. Anything else is text, kept to the byte: whether
a bare `1.50` is a number or a price, nobody but its reader can tell. Bytes that are no text become base64.
"""

from __future__ import annotations

import base64
from typing import Final, Literal, NamedTuple

from portbook.envelope.enclose import Failure
from portbook.envelope.problems import Problem, exit_problem, own_problems
from portbook.envelope.wrap import is_envelope
from portbook.errors import Refused
from portbook.model import JSON
from portbook.wire.parsing import parse

__all__ = ["BASE64", "NOT_JSON", "Form", "Ran", "outcome_of"]

# What a program is known to print; "auto" where nobody said.
Form = Literal["auto", "json", "text"]

NOT_JSON: Final = "ADAPTER.OUTPUT.NOT_JSON"
BASE64: Final = "ADAPTER.OUTPUT.BASE64"


class Ran(NamedTuple):
    """How a program ended."""

    status: int
    """Its exit status; negative for a signal, as Python has it."""
    output: bytes = b""
    stderr: bytes = b""
    problem: Problem | None = None
    """Why it did not run, or not to its end."""


def outcome_of(ran: Ran, form: Form = "auto") -> tuple[JSON | Failure, tuple[Problem, ...]]:
    """Return what to put into the envelope, and what to warn of.

    What is said of a failure, in this order: why it was not run to its end, the errors that it reports itself
    (on standard output, then on standard error), why its output cannot be read, its exit status.
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
    """Return an output as JSON, what is wrong with it, and what to warn of."""
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
