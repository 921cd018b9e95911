"""Builds envelopes of outcomes, with their provenance or without, and opens them.

- `wrap`, `failure`, `unwrap`: without provenance. A value that declares itself an `mcp.envelope.v0.1` is
  returned unchanged, never wrapped again. Any other result is wrapped unchanged, including a
  `schema_version` of its own.
- `enclose`: with provenance. Its rules:

  1. A result that is already an envelope is returned unchanged, whatever the controls are.
  2. A failure has a null `result`, or the partial output, and at least one error.
  3. Provenance is attached where it was requested and can be computed; otherwise it is null, with a warning.

The same outcome, controls and subject give the same envelope, with members in the same order, at every door.
No clock, no randomness, and no I/O, except to read the schema that `unwrap` checks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from portbook.canonical import NotJSON, json_bytes
from portbook.envelope.errors_and_warnings import (
    NO_PROVENANCE,
    OVERSIZE,
    UNRESOLVED,
    Problem,
    ending_problem,
    exception_problem,
    exit_problem,
    stderr_problem,
)
from portbook.envelope.request_for_envelope import Controls
from portbook.errors import Ending
from portbook.model import JSON, JSONObject
from portbook.provenance import method_ids
from portbook.provenance.anchors import Evidence, parse_anchor, resolves
from portbook.provenance.artifacts import Artifact
from portbook.provenance.record_inputs_and_outputs import (
    ARGUMENTS,
    RESULT,
    ProvenanceForm,
    Subject,
    inputs_of,
    output_of,
)
from portbook.provenance.signing import ALGORITHM, Signer, signed_bytes
from portbook.schema.engine import Validator
from portbook.tools.contract_registry import SchemaRegistry

__all__ = [
    "Failure",
    "NotAnEnvelope",
    "RecordedResults",
    "ToolFailed",
    "enclose",
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


# Envelopes with provenance.


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: its problems, and the partial output before it, if any."""

    problems: tuple[Problem, ...]
    partial: JSON = None


def enclose(
    outcome: JSON | Failure | Ending,
    controls: Controls,
    subject: Subject | None = None,
    signer: Signer | None = None,
) -> JSONObject:
    """Return the envelope of an outcome: a JSON result, a failure, or a call's ending without a result.

    Without a `subject` the run is unknown, and no provenance is attached. With a `signer`, a record is
    attached only if it is signed.
    """
    if is_envelope(result := _result(outcome)):
        return cast("JSONObject", result)
    errors = _errors(outcome, subject)
    warnings = (*controls.warnings, *_oversize(result, controls))
    if controls.capture_provenance and subject is not None:
        try:
            return _with_record(outcome, errors, warnings, controls, subject, signer)
        except NotJSON as error:
            omitted = Problem(
                NO_PROVENANCE, f"Provenance is omitted, because a digest cannot be computed: {error}."
            )
            warnings = (*warnings, omitted)
    # Anchors point into a record, so without one none of them resolves.
    nowhere = _finder(None, None, set())
    errors, warnings = _supported(errors, nowhere), _supported(warnings, nowhere)
    return _envelope(result, errors, warnings, None, _meta(controls, subject))


class RecordedResults:
    """The envelopes of one tool's results, for callers that ask for a record without digests.

    They differ only in the result, the arguments and the caller's id of the request, so their records have
    one form. They are those of `enclose`, byte for byte.
    """

    __slots__ = ("_controls", "_form", "_signer", "_subject")

    def __init__(self, result: JSON, controls: Controls, subject: Subject, signer: Signer | None) -> None:
        """Make the form with one result of `subject`; all results must be texts, if it is a text.

        The controls must be plain, and the subject without artifacts.

        Raises `NotJSON` where RFC 8785 cannot represent the form.
        """
        self._controls, self._subject, self._signer = controls, subject, signer
        self._form, _, _ = _record_form(result, (), (), controls, subject, is_signed=signer is not None)

    def enclose(self, result: JSON, arguments: JSON, request_id: str | None) -> JSONObject:
        """Return the envelope of a result.

        Raises `NotJSON` where RFC 8785 cannot represent a value to sign.
        """
        if is_envelope(result):
            return cast("JSONObject", result)
        record = self._form.record_of(arguments, result, request_id=request_id)
        if not (request_id or self._signer):
            return {"schema_version": ENVELOPE, "result": result, "provenance": record}
        meta = _meta(self._controls, replace(self._subject, request_id=request_id))
        return _signed(_envelope(result, (), (), record, meta), record, self._signer)


def _with_record(
    outcome: JSON | Failure | Ending,
    errors: tuple[Problem, ...],
    warnings: tuple[Problem, ...],
    controls: Controls,
    subject: Subject,
    signer: Signer | None,
) -> JSONObject:
    """Return the envelope with its record, signed where there is a signer.

    Raises `NotJSON` where RFC 8785 cannot represent a value to digest or sign.
    """
    result = _result(outcome)
    form, errors, warnings = _record_form(
        outcome, errors, warnings, controls, subject, is_signed=signer is not None
    )
    record = form.record_of(
        subject.arguments,
        result,
        problems=[problem.to_json() for problem in (*errors, *warnings)],
        request_id=subject.request_id,
        # Two runs of the same request have different ids, except where the record must be deterministic.
        occasion=None if controls.deterministic else subject.occasion.request_id,
    )
    return _signed(_envelope(result, errors, warnings, record, _meta(controls, subject)), record, signer)


def _record_form(
    outcome: JSON | Failure | Ending,
    errors: tuple[Problem, ...],
    warnings: tuple[Problem, ...],
    controls: Controls,
    subject: Subject,
    *,
    is_signed: bool,
) -> tuple[ProvenanceForm, tuple[Problem, ...], tuple[Problem, ...]]:
    """Return the form of the record, and the errors and warnings with the evidence that resolves.

    Raises `NotJSON` where RFC 8785 cannot represent a value to digest.
    """
    result, is_digested = _result(outcome), controls.capture_artifacts
    inputs = inputs_of(subject, is_digested=is_digested, is_full=controls.provenance_mode == "full")
    has_output = result is not None or not isinstance(outcome, Failure | Ending)
    outputs = (output_of(result, is_digested=is_digested),) if has_output else ()
    given = _evidence(subject.evidence, errors, warnings)
    leads = _finder(subject.arguments, result, {item.artifact_id for item in (*inputs, *outputs)})
    evidence = tuple(filter(leads, subject.evidence))
    errors, warnings = _supported(errors, leads), _supported(warnings, leads)
    anchored = _evidence(evidence, errors, warnings)
    if len(anchored) < len(given):
        warnings = (*warnings, Problem(UNRESOLVED, "Evidence whose anchors do not resolve was left out."))
    form = ProvenanceForm(
        subject,
        inputs=inputs,
        outputs=outputs,
        evidence=evidence,
        parents=controls.parents,
        done=[
            *subject.methods,
            *_done((*inputs, *outputs), anchored),
            *([method_ids.REGISTER_INPUT] if inputs else ()),
            *([method_ids.REGISTER_OUTPUT] if outputs else ()),
            *([method_ids.LINK_PARENTS] if controls.parents else ()),
            *([method_ids.CAPTURE_ERRORS] if errors else ()),
            *([method_ids.CAPTURE_WARNINGS] if warnings else ()),
            *(method_ids.BUILD_RECORD, method_ids.DIGEST_RECORD, method_ids.WRAP, method_ids.ATTACH_RECORD),
            *([method_ids.CREATE_SIGNATURE] if is_signed else ()),
        ],
        time=None if controls.deterministic else subject.occasion.time,
    )
    return form, errors, warnings


def _signed(envelope: JSONObject, record: JSONObject, signer: Signer | None) -> JSONObject:
    """Return the envelope, its record signed where there is a signer.

    Raises `NotJSON` where RFC 8785 cannot represent the envelope.
    """
    if signer is not None:
        signature: JSONObject = {
            "alg": ALGORITHM,
            "key_id": signer.key_id,
            "value": signer.sign(signed_bytes(envelope)),
        }
        cast("JSONObject", record["integrity"])["signature"] = signature
    return envelope


def _envelope(
    result: JSON,
    errors: Sequence[Problem],
    warnings: Sequence[Problem],
    record: JSONObject | None,
    meta: JSONObject,
) -> JSONObject:
    envelope: JSONObject = {"schema_version": ENVELOPE, "result": result}
    if errors:
        envelope["errors"] = [problem.to_json() for problem in errors]
    if warnings:
        envelope["warnings"] = [replace(problem, retryable=None).to_json() for problem in warnings]
    envelope["provenance"] = record
    if meta:
        envelope["meta"] = meta
    return envelope


def _result(outcome: JSON | Failure | Ending) -> JSON:
    if isinstance(outcome, Failure):
        return outcome.partial
    return None if isinstance(outcome, Ending) else outcome


def _errors(outcome: JSON | Failure | Ending, subject: Subject | None) -> tuple[Problem, ...]:
    if isinstance(outcome, Failure):
        return outcome.problems
    arguments = None if subject is None else subject.arguments
    return (ending_problem(outcome, arguments),) if isinstance(outcome, Ending) else ()


def _oversize(result: JSON, controls: Controls) -> Iterable[Problem]:
    limit = controls.max_output_bytes
    if limit is not None and len(json_bytes(result)) > limit:
        message = "The result is larger than preferences/max_output_bytes; it is not truncated."
        yield Problem(OVERSIZE, message, {"max_output_bytes": limit})


def _meta(controls: Controls, subject: Subject | None) -> JSONObject:
    """Return the `meta` about the run; in a deterministic envelope, only the caller's own request id."""
    if subject is None:
        return {}
    meta: JSONObject = {}
    occasion = subject.occasion
    request_id = subject.request_id or (None if controls.deterministic else occasion.request_id)
    if request_id:
        meta["request_id"] = request_id[:200]
    if not controls.deterministic and occasion.duration_ms is not None:
        meta["duration_ms"] = max(0, round(occasion.duration_ms))
    return {"adapter": subject.adapter, **meta} if meta else {}


def _evidence(own: Sequence[Evidence], *sides: Sequence[Problem]) -> list[Evidence]:
    """Return all evidence: the record's own, and that of errors and warnings."""
    return [*own, *(item for side in sides for problem in side for item in problem.evidence)]


def _supported(problems: Sequence[Problem], leads: Callable[[Evidence], bool]) -> tuple[Problem, ...]:
    """Return `problems` with only the evidence that resolves."""
    return tuple(replace(item, evidence=tuple(filter(leads, item.evidence))) for item in problems)


def _finder(arguments: JSON, result: JSON, known: set[str]) -> Callable[[Evidence], bool]:
    """Return a function that tells whether evidence resolves, as far as its content is available."""
    available = {ARGUMENTS: arguments, RESULT: result}

    def leads(item: Evidence) -> bool:
        anchor = parse_anchor(item.source)
        if anchor is None or anchor.artifact_id not in known:
            return False
        return anchor.artifact_id not in available or resolves(anchor, available[anchor.artifact_id])

    return leads


def _done(artifacts: Sequence[Artifact], evidence: Sequence[Evidence]) -> Iterable[str]:
    if any(artifact.digest is not None and not artifact.is_claimed for artifact in artifacts):
        yield method_ids.DIGEST_SHA256
    for mark, method in (("#json:/", method_ids.EVIDENCE_JSON), ("#text:line:", method_ids.EVIDENCE_LINES)):
        if any(mark in item.source for item in evidence):
            yield method
