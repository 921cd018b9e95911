"""`prov.record.v0.1`: the tool of a run, its inputs and outputs. Pure: no I/O, no clock, no randomness.

A record is built from a `Subject`, which is what the boundary knows about a run, and from the outcome. It
states only known facts: a digest was computed here, or is labelled as the claim of a third party. Values that
differ between runs of the same request are in the subject's `Occasion`, and left out where the record must be
deterministic. The run's id is derived from content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from portbook.canonical import NotWritten, canonical_bytes, canonical_part, jcs_bytes
from portbook.ids import run_id
from portbook.model import JSON, JSONObject
from portbook.provenance.anchors import Evidence
from portbook.provenance.artifacts import Artifact
from portbook.provenance.subject import Subject

__all__ = ["RECORD", "ProvenanceForm"]

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
