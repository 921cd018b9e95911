"""What a run read and what came of it, as artifacts; in full also what governed it. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.provenance.artifacts import (
    BYTES_TYPE,
    CLAIMED,
    JSON_TYPE,
    SCHEMA_TYPE,
    Artifact,
    Digest,
    artifact_of,
)
from portbook.provenance.subject import Subject

__all__ = ["ARGUMENTS", "RESULT", "inputs_of", "output_of", "referred_artifact"]

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
    return (*own, *_renamed_where_taken(subject.artifacts, taken), *governing)


def referred_artifact(reference: JSONObject, at: int) -> Artifact:
    """Return the artifact that a valid reference names; `at` is its index in the list.

    Nothing is fetched: the digest of a reference is labelled as claimed.
    """
    digest = cast("dict[str, str] | None", reference.get("digest"))
    labels = dict(cast("dict[str, str]", reference.get("labels", {})))
    labels.pop("digest", None)  # only set here
    if digest is not None:
        labels["digest"] = CLAIMED
    return Artifact(
        cast("str", reference.get("artifact_id", f"artifact.{at}")),
        cast("str", reference.get("media_type", BYTES_TYPE)),
        cast("str | None", reference.get("locator")),
        digest=None if digest is None else Digest(digest["alg"], digest["value"]),
        labels=labels,
    )


def output_of(result: JSON, *, is_digested: bool, media_type: str | None = None) -> Artifact:
    """Return a result as the output of a run: a string as text, any other value as JSON.

    Raises `NotJSON` where a digest is wanted and RFC 8785 cannot represent the result.
    """
    return artifact_of(
        RESULT, result, is_digested=is_digested, media_type=media_type, labels={"role": RESULT}
    )


def _renamed_where_taken(artifacts: Sequence[Artifact], taken: set[str]) -> Iterable[Artifact]:
    """Yield `artifacts`, renamed where an id is already used, so that an anchor means one artifact."""
    for artifact in artifacts:
        name = artifact.artifact_id
        if name not in taken:
            taken.add(name)
            yield artifact
            continue
        free = next(other for at in range(len(taken) + 1) if (other := f"artifact.{at}") not in taken)
        taken.add(free)
        yield replace(artifact, artifact_id=free, labels={**artifact.labels, "named": name[:200]})


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
