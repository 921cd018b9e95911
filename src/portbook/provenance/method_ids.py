"""Method ids: names for the steps that led to a result, and how to verify each. Pure: no I/O.

An id is lower-case words separated by dots. A record names a method only where it was applied; for those
below, the envelope shows whether it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = [
    "ATTACH_RECORD",
    "BUILD_RECORD",
    "CAPTURE_ERRORS",
    "CAPTURE_WARNINGS",
    "CREATE_SIGNATURE",
    "DIGEST_RECORD",
    "DIGEST_SHA256",
    "EVIDENCE_JSON",
    "EVIDENCE_LINES",
    "LINK_PARENTS",
    "PROMISES",
    "REGISTER_INPUT",
    "REGISTER_OUTPUT",
    "RESERVED",
    "WRAP",
    "flaw_of",
]

WRAP: Final = "adapter.wrap.envelope_v0_1"
ATTACH_RECORD: Final = "adapter.provenance.attach_record_v0_1"
CAPTURE_ERRORS: Final = "adapter.errors.capture"
CAPTURE_WARNINGS: Final = "adapter.warnings.capture"
BUILD_RECORD: Final = "engine.prov.record_v0_1.build"
REGISTER_INPUT: Final = "engine.prov.artifact.register_input"
REGISTER_OUTPUT: Final = "engine.prov.artifact.register_output"
EVIDENCE_JSON: Final = "engine.extract.evidence.json_pointer"
EVIDENCE_LINES: Final = "engine.extract.evidence.text_lines"
DIGEST_SHA256: Final = "integrity.digest.sha256"
DIGEST_RECORD: Final = "integrity.record_digest.compute"
CREATE_SIGNATURE: Final = "integrity.signature.create"
LINK_PARENTS: Final = "lineage.parent.link"

# First words reserved for later versions of the contract.
RESERVED: Final = frozenset({"policy", "attestation", "execution", "audit"})

# An id must match both the grammar of method ids and the pattern in the record's schema.
_GRAMMAR: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", re.ASCII)
_PATTERN: Final = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*", re.ASCII)


def flaw_of(method: str) -> str | None:
    """Return the problem with a method id, or None."""
    if _GRAMMAR.fullmatch(method) is None or _PATTERN.fullmatch(method) is None:
        return "is not a method id; write lower-case words that start with a letter, separated by dots"
    if (first := method.partition(".")[0]) in RESERVED:
        return f"starts with {first}, which is reserved; choose a different first word"
    return None


def _artifacts(envelope: Any) -> Iterator[Any]:
    yield from envelope["provenance"]["inputs"]
    yield from envelope["provenance"]["outputs"]


def _has_digest(algorithm: str) -> Callable[[Any], bool]:
    def has(envelope: Any) -> bool:
        return any(artifact.get("digest", {}).get("alg") == algorithm for artifact in _artifacts(envelope))

    return has


def _has_evidence(mark: str) -> Callable[[Any], bool]:
    def has(envelope: Any) -> bool:
        entries = [*envelope.get("errors", ()), *envelope.get("warnings", ())]
        given = [*envelope["provenance"]["evidence"]]
        given += [evidence for entry in entries for evidence in entry.get("evidence", ())]
        return any(mark in evidence["source"] for evidence in given)

    return has


# The condition under which a valid envelope's record may name a method, and the message where it fails.
PROMISES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    CAPTURE_ERRORS: (lambda envelope: bool(envelope.get("errors")), "there are no errors"),
    CAPTURE_WARNINGS: (lambda envelope: bool(envelope.get("warnings")), "there are no warnings"),
    REGISTER_INPUT: (lambda envelope: bool(envelope["provenance"]["inputs"]), "there are no inputs"),
    REGISTER_OUTPUT: (lambda envelope: bool(envelope["provenance"]["outputs"]), "there are no outputs"),
    EVIDENCE_JSON: (_has_evidence("#json:/"), "no evidence has a JSON pointer"),
    EVIDENCE_LINES: (_has_evidence("#text:line:"), "no evidence has lines of text"),
    DIGEST_SHA256: (_has_digest("sha256"), "no artifact has a digest of this kind"),
    "integrity.digest.sha512": (_has_digest("sha512"), "no artifact has a digest of this kind"),
    "integrity.digest.blake3": (_has_digest("blake3"), "no artifact has a digest of this kind"),
    DIGEST_RECORD: (
        lambda envelope: "record_digest" in envelope["provenance"].get("integrity", {}),
        "there is no record_digest",
    ),
    CREATE_SIGNATURE: (
        lambda envelope: "signature" in envelope["provenance"].get("integrity", {}),
        "there is no signature",
    ),
    LINK_PARENTS: (lambda envelope: bool(envelope["provenance"]["parents"]), "there are no parents"),
}
