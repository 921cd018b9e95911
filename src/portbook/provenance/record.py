"""`prov.record.v0.1`: the tool of a run, its inputs and outputs. Pure: no I/O, no clock, no randomness.

A record is built from a `Subject`, which is what the boundary knows about a run, and from the outcome. It
states only known facts: a digest was computed here, or is labelled as the claim of a third party. Values that
differ between runs of the same request are in the subject's `Occasion`, and left out where the record must be
deterministic. The run's id is derived from content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from portbook.canonical import canonical_bytes
from portbook.ids import run_id
from portbook.model import JSON, JSONObject
from portbook.provenance import methods
from portbook.provenance.anchors import Evidence
from portbook.provenance.artifacts import JSON_TYPE, SCHEMA_TYPE, Artifact, Digest, artifact_of, digest_of
from portbook.provenance.lengths import require_length
from portbook.provenance.occasion import Occasion

__all__ = ["ARGUMENTS", "RECORD", "RESULT", "Subject", "build_record", "inputs_of", "output_of"]

RECORD: Final = "prov.record.v0.1"

# The ids of the two artifacts that every call has, also used in anchors.
ARGUMENTS: Final = "arguments"
RESULT: Final = "result"

_DIGESTS: Final = (
    "definition_digest",
    "input_schema_digest",
    "output_schema_digest",
    "policy_digest",
    "rule_digest",
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UNKNOWN: Final = Occasion()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known about a run, except its outcome; the same at every door."""

    tool: str
    version: str = "unknown"
    adapter: str = "portbook"
    arguments: JSON = None
    """The tool's arguments; None where they are unknown."""
    artifacts: tuple[Artifact, ...] = ()
    """Further inputs, such as the artifacts that a request names."""
    request_id: str | None = None
    """The id that the caller gave its request."""
    definition_digest: str | None = None
    """This and the next three: sha256 in hexadecimal of the RFC 8785 form."""
    input_schema_digest: str | None = None
    output_schema_digest: str | None = None
    policy_digest: str | None = None
    rule: str | None = None
    """The name of the policy rule that decided the call."""
    rule_digest: str | None = None
    methods: tuple[str, ...] = ()
    """Method ids to add to those that the record adds itself."""
    evidence: tuple[Evidence, ...] = ()
    occasion: Occasion = _UNKNOWN

    def __post_init__(self) -> None:
        """Raise `ValueError` for a value that a record must not hold."""
        require_length("tool", self.tool, 200)
        require_length("version", self.version, 100)
        require_length("adapter", self.adapter, 100)
        require_length("request_id", self.request_id, 200, 0)
        for name in _DIGESTS:
            value = getattr(self, name)
            if value is not None and _SHA256.fullmatch(value) is None:
                raise ValueError(f"{name}: must be 64 lower-case hexadecimal digits")
        for method in self.methods:
            if flaw := methods.flaw_of(method):
                raise ValueError(f"methods: {method[:60]!r} {flaw}")


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
    return (*own, *_renamed(subject.artifacts, taken), *governing)


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


def _renamed(artifacts: Sequence[Artifact], taken: set[str]) -> Iterable[Artifact]:
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


def build_record(
    subject: Subject,
    *,
    inputs: Sequence[Artifact],
    outputs: Sequence[Artifact],
    evidence: Sequence[Evidence],
    parents: Sequence[str],
    done: Sequence[str],
    content: JSON,
    is_deterministic: bool,
) -> JSONObject:
    """Return the record of a run, with its digest; `content` is the part of the run that is not in it.

    Raises `NotJSON` where `content` is not JSON.
    """
    time = None if is_deterministic else subject.occasion.time
    record: JSONObject = {
        "schema_version": RECORD,
        "run_id": "",
        "tool": {"name": subject.tool, "version": subject.version, "adapter": subject.adapter},
        **({} if time is None else {"time": time}),
        "inputs": [artifact.to_json() for artifact in inputs],
        "outputs": [artifact.to_json() for artifact in outputs],
        "methods": list(dict.fromkeys(done)),
        "evidence": [item.to_json() for item in evidence],
        "parents": list(parents),
    }
    # Two runs of the same request have different ids, except where the record must be deterministic.
    occasion = None if is_deterministic else subject.occasion.request_id
    named: JSON = [record, subject.arguments, subject.request_id, content, occasion]
    record["run_id"] = run_id(canonical_bytes(named))
    record["integrity"] = {"record_digest": digest_of(record).to_json()}
    return record
