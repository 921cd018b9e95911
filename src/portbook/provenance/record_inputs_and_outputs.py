"""`prov.record.v0.1`: the tool of a run, its inputs and outputs. Pure: no I/O, no clock, no randomness.

- `ProvenanceForm`: a record, built from a `Subject`, which is what the boundary knows about a run, and from
  the outcome. It states only known facts: a digest was computed here, or is labelled as the claim of a third
  party. Values that differ between runs of the same request are in the subject's `Occasion`, and left out
  where the record must be deterministic. The run's id is derived from content.
- `inputs_of` and `output_of`: what a run read and what came of it; in full also what governed it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from portbook.canonical import NotJSON, NotWritten, canonical_bytes, canonical_part, jcs_bytes
from portbook.errors import Refused
from portbook.ids import run_id
from portbook.model import JSON, JSONObject, Occasion
from portbook.provenance import method_ids
from portbook.provenance.anchors import Evidence
from portbook.provenance.artifacts import (
    BYTES_TYPE,
    CLAIMED,
    JSON_TYPE,
    SCHEMA_TYPE,
    TEXT_TYPE,
    Artifact,
    Digest,
    artifact_of,
)
from portbook.provenance.require_length import require_length
from portbook.wire.parsing import parse

__all__ = [
    "ARGUMENTS",
    "RESULT",
    "ProvenanceForm",
    "Subject",
    "inputs_of",
    "output_of",
    "referred_artifact",
    "subject_of_program",
]

RECORD: Final = "prov.record.v0.1"

# How a form has the id of the run, which it does not know. Text within a record has its quotes escaped, so
# this stands at one place alone: only the version of the schema, the time and the tool follow.
_NO_ID: Final = b'"run_id":""'


class ProvenanceForm:
    """The records of runs that differ only in what is not in them: arguments, result, ids of requests.

    So the runs of a tool, as long as nobody asks for digests: all but the id of a run and the digest of its
    record is written once. The records share their inner parts, but for `integrity`: nobody writes to those.
    """

    __slots__ = ("_after", "_digested", "_named", "_record")

    def __init__(
        self,
        subject: Subject,
        *,
        inputs: Sequence[Artifact],
        outputs: Sequence[Artifact],
        evidence: Sequence[Evidence],
        parents: Sequence[str],
        done: Sequence[str],
        time: str | None = None,
    ) -> None:
        """Use everything of `subject` but its arguments and its ids of requests.

        Raises `NotJSON` where RFC 8785 cannot represent it.
        """
        self._record: JSONObject = {
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
        before, _, after = jcs_bytes(self._record).rpartition(_NO_ID)
        self._after = b'"' + after
        # Hashed as far as they are known: the rest of each is short.
        self._named = hashlib.sha256(b"[" + canonical_bytes(self._record))
        self._digested = hashlib.sha256(before + _NO_ID[:-1])

    def record_of(
        self,
        arguments: JSON,
        result: JSON,
        *,
        problems: JSON = None,
        request_id: str | None = None,
        occasion: str | None = None,
    ) -> JSONObject:
        """Return the record of one run, with its digest; only `integrity` is the caller's to write to.

        `problems` are its errors and warnings, `occasion` is the id that Portbook gave the call.

        Raises `NotJSON` where the arguments or the result are not JSON.
        """
        # The canonical form of [record, arguments, request_id, [result, problems], occasion].
        named = self._named.copy()
        try:
            named.update(
                b"".join(
                    (
                        b",",
                        canonical_part(arguments),
                        b",null,[" if request_id is None else b",%b,[" % canonical_part(request_id),
                        canonical_part(result),
                        b",%b]," % canonical_part(problems) if problems else b",[]],",
                        b"null]" if occasion is None else canonical_part(occasion) + b"]",
                    )
                )
            )
        except NotWritten:
            whole: JSON = [self._record, arguments, request_id, [result, problems or []], occasion]
            named = hashlib.sha256(canonical_bytes(whole))
        run = run_id(named.hexdigest())
        digested = self._digested.copy()
        digested.update(run.encode() + self._after)
        record_digest: JSONObject = {"alg": "sha256", "value": digested.hexdigest()}
        return {**self._record, "run_id": run, "integrity": {"record_digest": record_digest}}


# What is known about a run.

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
            if flaw := method_ids.flaw_of(method):
                raise ValueError(f"methods: {method[:60]!r} {flaw}")


# Its inputs and outputs.

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


# The inputs of a program that `portbook wrap` runs: its words, its files, and in full the program itself.

_MEDIA_TYPES: Final = {".json": JSON_TYPE, ".txt": TEXT_TYPE, ".md": "text/markdown", ".csv": "text/csv"}


def subject_of_program(
    words: Sequence[str],
    files: Iterable[tuple[str, bytes]],
    program: Callable[[], bytes | None],
    *,
    tool: str,
    version: str,
    is_digested: bool,
    is_full: bool,
) -> Subject:
    """Return what is known about the run of a program: its command's words, and files by name and content.

    In full, the content of `program` is an input, too, where it is found.

    Raises `ValueError` for a name that is too long.
    """
    inputs = [_file_artifact(name, content, is_digested=is_digested) for name, content in files]
    if is_full and (content := program()) is not None:
        labels = {"role": "program"}
        inputs.append(artifact_of("program", content, is_digested=is_digested, labels=labels))
    return Subject(tool, version, arguments=list(words), artifacts=tuple(inputs))


def _file_artifact(name: str, content: bytes, *, is_digested: bool) -> Artifact:
    """Return a file as an artifact, as JSON if it is valid JSON."""
    stem, dot, ending = name.rpartition("/")[2].rpartition(".")
    media_type = _MEDIA_TYPES.get(dot + ending.lower()) if stem else None
    if media_type == JSON_TYPE:
        try:
            return artifact_of(
                name, parse(content), is_digested=is_digested, media_type=JSON_TYPE, locator=name
            )
        except (Refused, NotJSON):
            media_type = None
    return artifact_of(name, content, is_digested=is_digested, media_type=media_type, locator=name)
