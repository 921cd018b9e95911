"""Wraps and unwraps results, without provenance. No I/O, except to read the schema that `unwrap` checks.

A value that declares itself an `mcp.envelope.v0.1` is returned unchanged, never wrapped again. Any other
result is wrapped unchanged, including a `schema_version` of its own.
"""

from __future__ import annotations

import functools
from typing import Any, Final, cast

from portbook.envelope.errors_and_warnings import exception_problem, exit_problem, stderr_problem
from portbook.model import JSON, JSONObject
from portbook.schema.engine import Validator
from portbook.tools.contract_registry import SchemaRegistry

__all__ = [
    "ENVELOPE",
    "NotAnEnvelope",
    "ToolFailed",
    "envelope_schema",
    "failure",
    "is_envelope",
    "unwrap",
    "wrap",
]

ENVELOPE: Final = "mcp.envelope.v0.1"


class NotAnEnvelope(ValueError):
    """Raised by `unwrap` for a value that is not a valid envelope; the message has the place in it."""


class ToolFailed(ValueError):
    """Raised by `unwrap` for an envelope with errors; `errors` has them, `partial` the output, if any."""

    def __init__(self, errors: tuple[JSONObject, ...], partial: JSON) -> None:
        super().__init__("; ".join(str(error.get("code")) for error in errors))
        self.errors = errors
        self.partial = partial


def is_envelope(value: object) -> bool:
    """Return whether `value` declares itself an envelope; `inspect_envelope` verifies it."""
    return isinstance(value, dict) and cast("dict[str, Any]", value).get("schema_version") == ENVELOPE


def wrap(result: JSON) -> JSONObject:
    """Return `result` in an envelope without provenance; return an envelope unchanged."""
    if is_envelope(result):
        return cast("JSONObject", result)
    return {"schema_version": ENVELOPE, "result": result, "provenance": None}


def failure(
    *,
    exit_code: int | None = None,
    error: BaseException | None = None,
    stderr: str = "",
    partial: JSON = None,
) -> JSONObject:
    """Return the envelope of a tool that failed, with the `partial` output before the failure.

    The error is built from the `exit_code` (with `stderr`), the exception `error`, or `stderr`. Where
    `partial` is an envelope, it is returned unchanged.

    Raises `ValueError` without an exit code, an exception and standard error.
    """
    if exit_code is not None:
        problem = exit_problem(exit_code, stderr)
    elif error is not None:
        problem = exception_problem(error)
    elif stderr:
        problem = stderr_problem(stderr)
    else:
        raise ValueError("a failure needs an exit_code, an error or stderr")
    if is_envelope(partial):
        return cast("JSONObject", partial)
    return {"schema_version": ENVELOPE, "result": partial, "errors": [problem.to_json()], "provenance": None}


def unwrap(envelope: JSON) -> JSON:
    """Return the result in an envelope.

    Raises `NotAnEnvelope` where `envelope` is not one or breaks its schema (unknown members do, too),
    `ToolFailed` where it has errors. `inspect_envelope` also verifies digests and signatures.
    """
    if not isinstance(envelope, dict) or not is_envelope(envelope) or "result" not in envelope:
        raise NotAnEnvelope(f"expected an object with schema_version {ENVELOPE} and a result")
    around = {**envelope, "result": None}  # a result may be any value, so there is nothing to check in it
    schema = envelope_schema()
    if not schema.is_valid(around):
        first = next(iter(schema.findings(around)), None)
        where = "" if first is None else f": {first.pointer or '(root)'}: {first.message}"
        raise NotAnEnvelope(f"the envelope breaks its schema{where}")
    if errors := envelope.get("errors"):
        raise ToolFailed(tuple(cast("list[JSONObject]", errors)), envelope["result"])
    return envelope["result"]


@functools.cache
def envelope_schema() -> Validator:
    """Return the shipped schema of envelopes."""
    return SchemaRegistry().load(ENVELOPE)
