"""The one way from an outcome to its envelope, provenance included. Pure: no I/O, no clock, nothing random.

Rules it keeps:

1. What is an envelope already is returned as it is, whatever was asked for.
2. A failure is `result` null, or the output there was, with at least one error.
3. Provenance is attached where it was asked for and can be true; else it is null, and a warning says why.

The same outcome, controls and subject give the same envelope, member for member in the same order, through
whichever door the call came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from portbook.canonical import NotJSON, json_bytes
from portbook.envelope.controls import Controls
from portbook.envelope.problems import NO_PROVENANCE, OVERSIZE, UNRESOLVED, Problem, ending_problem
from portbook.envelope.wrap import ENVELOPE, is_envelope, signed_bytes
from portbook.errors import Ending
from portbook.model import JSON, JSONObject
from portbook.provenance import methods
from portbook.provenance.anchors import Evidence, parse_anchor, resolves
from portbook.provenance.artifacts import Artifact
from portbook.provenance.record import ARGUMENTS, RESULT, Subject, build_record, inputs_of, output_of
from portbook.provenance.signing import ALGORITHM, Signer

__all__ = ["Failure", "enclose"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure: what is known of it, and what output there was before it, if any."""

    problems: tuple[Problem, ...]
    partial: JSON = None


def enclose(
    outcome: JSON | Failure | Ending,
    controls: Controls,
    subject: Subject | None = None,
    signer: Signer | None = None,
) -> JSONObject:
    """Return the envelope of an outcome: a JSON result, a failure, or a call's ending without a result.

    Without a subject nothing is known of the run, and no provenance is attached. Where there is a signer, a
    record is attached signed or not at all.
    """
    if is_envelope(result := _result(outcome)):
        return cast("JSONObject", result)
    errors = _errors(outcome, subject)
    warnings = (*controls.warnings, *_oversize(result, controls))
    if controls.capture_provenance and subject is not None:
        try:
            return _with_record(outcome, errors, warnings, controls, subject, signer)
        except NotJSON as error:
            omitted = Problem(NO_PROVENANCE, f"There is no provenance, for no digest: {error}.")
            warnings = (*warnings, omitted)
    # Anchors lead into a record; where there is none, they lead nowhere.
    nowhere = _finder(None, None, set())
    errors, warnings = _supported(errors, nowhere), _supported(warnings, nowhere)
    return _envelope(result, errors, warnings, None, _meta(controls, subject))


def _with_record(
    outcome: JSON | Failure | Ending,
    errors: tuple[Problem, ...],
    warnings: tuple[Problem, ...],
    controls: Controls,
    subject: Subject,
    signer: Signer | None,
) -> JSONObject:
    """Return the envelope with its record, signed where there is a signer.

    Raises `NotJSON` where RFC 8785 has no form for what is to be digested or signed.
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
        warnings = (*warnings, Problem(UNRESOLVED, "Evidence whose anchors lead nowhere was left out."))
    record = build_record(
        subject,
        inputs=inputs,
        outputs=outputs,
        evidence=evidence,
        parents=controls.parents,
        done=[
            *subject.methods,
            *_done((*inputs, *outputs), anchored),
            *([methods.REGISTER_INPUT] if inputs else ()),
            *([methods.REGISTER_OUTPUT] if outputs else ()),
            *([methods.LINK_PARENTS] if controls.parents else ()),
            *([methods.CAPTURE_ERRORS] if errors else ()),
            *([methods.CAPTURE_WARNINGS] if warnings else ()),
            *(methods.BUILD_RECORD, methods.DIGEST_RECORD, methods.WRAP, methods.ATTACH_RECORD),
            *([methods.CREATE_SIGNATURE] if signer else ()),
        ],
        content=[result, [problem.to_json() for problem in (*errors, *warnings)]],
        is_deterministic=controls.deterministic,
    )
    envelope = _envelope(result, errors, warnings, record, _meta(controls, subject))
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
        message = "The result is larger than preferences/max_output_bytes; it is whole."
        yield Problem(OVERSIZE, message, {"max_output_bytes": limit})


def _meta(controls: Controls, subject: Subject | None) -> JSONObject:
    """Return what is to be said of the run itself; in a deterministic envelope, only what the caller said."""
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
    """Return `problems` with the evidence that leads to something, and no other."""
    return tuple(replace(item, evidence=tuple(filter(leads, item.evidence))) for item in problems)


def _finder(arguments: JSON, result: JSON, known: set[str]) -> Callable[[Evidence], bool]:
    """Return what tells whether evidence leads to something, as far as can be seen from here."""
    at_hand = {ARGUMENTS: arguments, RESULT: result}

    def leads(item: Evidence) -> bool:
        anchor = parse_anchor(item.source)
        if anchor is None or anchor.artifact_id not in known:
            return False
        return anchor.artifact_id not in at_hand or resolves(anchor, at_hand[anchor.artifact_id])

    return leads


def _done(artifacts: Sequence[Artifact], evidence: Sequence[Evidence]) -> Iterable[str]:
    if any(artifact.digest is not None and not artifact.is_claimed for artifact in artifacts):
        yield methods.DIGEST_SHA256
    for mark, method in (("#json:/", methods.EVIDENCE_JSON), ("#text:line:", methods.EVIDENCE_LINES)):
        if any(mark in item.source for item in evidence):
            yield method
