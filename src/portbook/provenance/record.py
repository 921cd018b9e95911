"""`prov.record.v0.1`: which tool ran, on what, with what outcome. Pure: no I/O, no clock, nothing random.

A record is made of a `Subject`, which is what the boundary knows of a run, and of what came out. It says
nothing that is not known: a digest is there only where it was computed here, or is labelled as a claim of
somebody else's. What differs from one run of the same request to the next is in the subject's `Occasion`, and
left out for determinism; the run's id is made of content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from portbook.canonical import canonical_bytes
from portbook.clock import run_id
from portbook.model import JSON, JSONObject
from portbook.provenance import methods
from portbook.provenance.anchors import Evidence
from portbook.provenance.artifacts import JSON_TYPE, SCHEMA_TYPE, Artifact, Digest, artifact_of, digest_of
from portbook.provenance.lengths import require_length

__all__ = ["ARGUMENTS", "RECORD", "RESULT", "Occasion", "Subject", "build_record", "inputs_of", "output_of"]

RECORD: Final = "prov.record.v0.1"

# The names of the two artifacts that every call has, in anchors too.
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


@dataclass(frozen=True, slots=True)
class Occasion:
    """What differs from one run of the same request to the next."""

    request_id: str | None = None
    """The name that we gave the call."""
    time: str | None = None
    """When it ran, as RFC 3339 has it."""
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of a run, apart from how it ended: the same for a call through any door."""

    tool: str
    version: str = "unknown"
    adapter: str = "portbook"
    arguments: JSON = None
    """What the tool was given; None where nothing is known of it."""
    artifacts: tuple[Artifact, ...] = ()
    """What else it was given, such as the artifacts that a request names."""
    request_id: str | None = None
    """The name that the caller gave its request."""
    definition_digest: str | None = None
    """This and the next three: sha256 of what governed the run, in RFC 8785's form and hexadecimal."""
    input_schema_digest: str | None = None
    output_schema_digest: str | None = None
    policy_digest: str | None = None
    rule: str | None = None
    """The name of the rule that let it run, or did not."""
    rule_digest: str | None = None
    methods: tuple[str, ...] = ()
    """What was done beside what a record says of itself."""
    evidence: tuple[Evidence, ...] = ()
    occasion: Occasion = Occasion()

    def __post_init__(self) -> None:
        """Raise `ValueError` for what no record may hold."""
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
    """Return what a run took in, each artifact under an id of its own; in full, what governed it too.

    Raises `NotJSON` where RFC 8785 has no form for the arguments and a digest is wanted.
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
    """Return a result as what a run put out: a string as text, anything else as JSON.

    Raises `NotJSON` where RFC 8785 has no form for it and a digest is wanted.
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
    """Yield `artifacts`, those whose id is taken under another, so that an anchor means one artifact."""
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
    """Return the record of a run, with its digest; `content` is what of the run is not in the record itself.

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
    # Two runs of the same request on different occasions are two runs, unless determinism is wanted.
    occasion = None if is_deterministic else subject.occasion.request_id
    named: JSON = [record, subject.arguments, subject.request_id, content, occasion]
    record["run_id"] = run_id(canonical_bytes(named))
    record["integrity"] = {"record_digest": digest_of(record).to_json()}
    return record
