"""`prov.record.v0.1`: the tool of a run, its inputs and outputs. Pure: no I/O, no clock, no randomness.

A record is built from a `Subject`, which is what the boundary knows about a run, and from the outcome. It
states only known facts: a digest was computed here, or is labelled as the claim of a third party. Values that
differ between runs of the same request are in the subject's `Occasion`, and left out where the record must be
deterministic. The run's id is derived from content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from portbook.canonical import canonical_bytes
from portbook.ids import run_id
from portbook.model import JSON, JSONObject
from portbook.provenance.anchors import Evidence
from portbook.provenance.artifacts import Artifact, digest_of
from portbook.provenance.subject import Subject

__all__ = ["RECORD", "build_record"]

RECORD: Final = "prov.record.v0.1"


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
