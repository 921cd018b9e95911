"""What a run read and what came of it, as artifacts; in full also what governed it. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from portbook.model import JSON
from portbook.provenance.artifacts import (
    JSON_TYPE,
    SCHEMA_TYPE,
    Artifact,
    Digest,
    artifact_of,
    renamed_where_taken,
)
from portbook.provenance.subject import Subject

__all__ = ["ARGUMENTS", "RESULT", "inputs_of", "output_of"]

# The ids of the two artifacts that every call has, also used in anchors.
ARGUMENTS: Final = "arguments"
RESULT: Final = "result"


def inputs_of(subject: Subject, *, is_digested: bool, is_full: bool) -> tuple[Artifact, ...]:
    """Return the inputs of a run with unique ids; in full, also the tool, its schemas and the policy.

    Raises `NotJSON` where a digest is wanted and RFC 8785 cannot represent the arguments.
    """
    own: list[Artifact] = []
    if subject.arguments is not None:
        own.append(
            artifact_of(
                ARGUMENTS,
                subject.arguments,
                is_digested=is_digested,
                media_type=JSON_TYPE,
                labels={"role": ARGUMENTS},
            )
        )
    governing = list(_governing(subject)) if is_full else []
    taken = {ARGUMENTS, RESULT, *(artifact.artifact_id for artifact in governing)}
    return (*own, *renamed_where_taken(subject.artifacts, taken), *governing)


def output_of(result: JSON, *, is_digested: bool, media_type: str | None = None) -> Artifact:
    """Return a result as the output of a run: a string as text, any other value as JSON.

    Raises `NotJSON` where a digest is wanted and RFC 8785 cannot represent the result.
    """
    return artifact_of(
        RESULT, result, is_digested=is_digested, media_type=media_type, labels={"role": RESULT}
    )


def _governing(subject: Subject) -> Iterable[Artifact]:
    for name, kind, value in (
        ("tool.definition", JSON_TYPE, subject.definition_digest),
        ("tool.input_schema", SCHEMA_TYPE, subject.input_schema_digest),
        ("tool.output_schema", SCHEMA_TYPE, subject.output_schema_digest),
        ("policy", JSON_TYPE, subject.policy_digest),
    ):
        if value is not None:
            yield Artifact(name, kind, digest=Digest("sha256", value), labels={"role": name})
    if subject.rule is not None:
        digest = None if subject.rule_digest is None else Digest("sha256", subject.rule_digest)
        labels = {"role": "policy.rule", "rule": subject.rule[:200]}
        yield Artifact("policy.rule", JSON_TYPE, digest=digest, labels=labels)
