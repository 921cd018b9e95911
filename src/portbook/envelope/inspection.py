"""Whether an envelope holds what it says: what its schema cannot tell.

A ladder, which ends at the first rung where that does not hold; all the others are looked at:

1. It is what the schema of envelopes allows.
2. It is not an envelope in an envelope.
3. Its record names artifacts once, methods by their grammar, and none that was not done.
4. Its anchors lead to artifacts of the record and, where those are at hand, to parts that they have.
5. The digests of artifacts at hand, and of the record, are those that were written down.
6. Its signature is of everything in it, and by a key of the reader's choice where there is one.

At hand is the result, which is in the envelope, and what the reader brings along: nothing is fetched, and no
locator is followed. No I/O, but for reading the schema where none is handed in.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from portbook.canonical import NotJSON, jcs_bytes
from portbook.envelope.wrap import ENVELOPE, is_envelope, signed_bytes
from portbook.errors import Finding, Refused
from portbook.model import JSON
from portbook.provenance.anchors import parse_anchor, resolves
from portbook.provenance.artifacts import digested_bytes, is_json
from portbook.provenance.methods import PROMISES, flaw_of
from portbook.provenance.record import ARGUMENTS, RESULT
from portbook.provenance.signing import ALGORITHM, BadKey, PublicKey
from portbook.schema.engine import Validator
from portbook.schema.messages import shorten
from portbook.tools.registry import SchemaRegistry
from portbook.wire.parsing import parse

__all__ = ["Inspection", "inspect_envelope"]

# The algorithms of the contract that Python brings along; the third, BLAKE3, it does not.
_HASHES: Final = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}


class Inspection(NamedTuple):
    """What was found."""

    findings: tuple[Finding, ...]
    """What is wrong, ordered by pointer; `keyword` is the check."""
    notes: tuple[str, ...]
    """What could not be looked at, and what was vouched for."""

    @property
    def is_sound(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.findings


class _Case(NamedTuple):
    """An envelope that its schema allows, its record, and the contents that are at hand."""

    envelope: dict[str, Any]
    record: dict[str, Any]
    given: Mapping[str, bytes]
    keys: Sequence[PublicKey]

    @property
    def artifacts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield every artifact of the record, with where it stands."""
        for side in ("inputs", "outputs"):
            for at, artifact in enumerate(self.record.get(side, ())):
                yield f"/provenance/{side}/{at}", artifact


def inspect_envelope(
    envelope: JSON,
    *,
    artifacts: Mapping[str, bytes] | None = None,
    keys: Sequence[PublicKey] = (),
    schema: Validator | None = None,
) -> Inspection:
    """Return what is wrong with `envelope`.

    `artifacts` are the contents that the reader has, by their ids. With `keys`, one of them must have signed
    it. `schema` is the one of `mcp.envelope.v0.1`, by default the one that is shipped.
    """
    schema = schema or _shipped()
    if not schema.is_valid(envelope):
        return Inspection(schema.findings(envelope), ())
    valid = cast("dict[str, Any]", envelope)
    case = _Case(valid, valid.get("provenance") or {}, artifacts or {}, keys)
    seen = [
        *_nesting(case),
        *_names(case),
        *_methods(case),
        *_anchors(case),
        *_digests(case),
        *_record_digest(case),
        *_signature(case),
    ]
    return Inspection(
        tuple(sorted(item for item in seen if isinstance(item, Finding))),
        tuple(item for item in seen if isinstance(item, str)),
    )


@functools.cache
def _shipped() -> Validator:
    return SchemaRegistry().load(ENVELOPE)


def _finding(pointer: str, message: str, check: str) -> Finding:
    return Finding(pointer, message, check, "")


def _nesting(case: _Case) -> Iterator[Finding]:
    if is_envelope(case.envelope["result"]):
        yield _finding("/result", "is an envelope itself; return that one as it is", "double-wrap")


def _names(case: _Case) -> Iterator[Finding]:
    seen: set[str] = set()
    for pointer, artifact in case.artifacts:
        if artifact["artifact_id"] in seen:
            yield _finding(
                f"{pointer}/artifact_id", "another artifact has this id; give each its own", "artifact"
            )
        seen.add(artifact["artifact_id"])
    for name in sorted(case.given.keys() - seen):
        yield _finding("/provenance", f"the record has no artifact {shorten(name)}", "artifact")


def _methods(case: _Case) -> Iterator[Finding]:
    for at, method in enumerate(case.record.get("methods", ())):
        pointer = f"/provenance/methods/{at}"
        if flaw := flaw_of(method):
            yield _finding(pointer, flaw, "method")
        elif method in PROMISES:
            is_kept, otherwise = PROMISES[method]
            if not is_kept(case.envelope):
                yield _finding(pointer, f"names what was not done: {otherwise}", "method")


def _evidence(case: _Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every piece of evidence, with where it stands."""
    for at, item in enumerate(case.record.get("evidence", ())):
        yield f"/provenance/evidence/{at}", item
    for side in ("errors", "warnings"):
        for place, entry in enumerate(case.envelope.get(side, ())):
            for at, item in enumerate(entry.get("evidence", ())):
                yield f"/{side}/{place}/evidence/{at}", item


def _anchors(case: _Case) -> Iterator[Finding]:
    artifacts = {artifact["artifact_id"]: artifact for _, artifact in case.artifacts}
    for pointer, item in _evidence(case):
        anchor = parse_anchor(item["source"])
        if anchor is None:
            message = "is no anchor; write artifact:<id>, #json:/pointer or #text:line:12-14 after it"
            yield _finding(f"{pointer}/source", message, "anchor")
        elif anchor.artifact_id not in artifacts:
            yield _finding(f"{pointer}/source", "leads to no artifact of the record", "anchor")
        elif not all(resolves(anchor, content) for content in _readable(case, artifacts[anchor.artifact_id])):
            yield _finding(f"{pointer}/source", "leads to a part that the artifact does not have", "anchor")
        if flaw := flaw_of(item["method"]) if "method" in item else None:
            yield _finding(f"{pointer}/method", flaw, "method")


def _is_result(artifact: dict[str, Any]) -> bool:
    return artifact["artifact_id"] == RESULT or artifact.get("labels", {}).get("role") == RESULT


def _contents(case: _Case, artifact: dict[str, Any]) -> Iterator[JSON | bytes]:
    """Yield an artifact's content, as often as it is at hand.

    Raises `NotJSON` where it is to be JSON and what the reader has of it is none.
    """
    if any(artifact is output for output in case.record["outputs"]) and _is_result(artifact):
        yield case.envelope["result"]
    given = case.given.get(artifact["artifact_id"])
    if given is not None and is_json(artifact["media_type"]):
        try:
            yield parse(given)
        except Refused as refused:
            raise NotJSON(refused.findings[0].message) from None
    elif given is not None:
        yield given


def _readable(case: _Case, artifact: dict[str, Any]) -> Iterator[JSON]:
    """Yield an artifact's content where it is at hand as JSON or text."""
    try:
        for content in _contents(case, artifact):
            yield content.decode() if isinstance(content, bytes) else content
    except (NotJSON, UnicodeDecodeError):
        return  # what is wrong with it, its digest tells


def _digests(case: _Case) -> Iterator[Finding | str]:
    unseen: list[str] = []
    undigested: list[str] = []
    for pointer, artifact in case.artifacts:
        digest = artifact.get("digest")
        if digest is None:
            if artifact["artifact_id"] in (ARGUMENTS, RESULT):
                undigested.append(shorten(artifact["artifact_id"]))
            continue
        try:
            contents = [digested_bytes(item, artifact["media_type"]) for item in _contents(case, artifact)]
        except NotJSON as error:
            yield _finding(pointer, f"its content has no digest: {error}", "digest")
            continue
        if not contents:
            unseen.append(shorten(artifact["artifact_id"]))
        for content in contents:
            yield from _compare(f"{pointer}/digest", digest, content)
            if artifact.get("size_bytes", len(content)) != len(content):
                yield _finding(f"{pointer}/size_bytes", "is not the size of the artifact", "digest")
    if unseen:
        yield f"not at hand, so not compared: {', '.join(unseen)}"
    if undigested:
        yield f"without a digest, so not compared: {', '.join(undigested)}"


def _compare(pointer: str, digest: dict[str, str], content: bytes) -> Iterator[Finding | str]:
    if digest["alg"] not in _HASHES:
        yield f"{pointer}: {digest['alg']} cannot be computed here, so it was not compared"
    elif _HASHES[digest["alg"]](content).hexdigest() != digest["value"]:
        yield _finding(f"{pointer}/value", "is not the digest of what is at hand", "digest")


def _record_digest(case: _Case) -> Iterator[Finding | str]:
    digest = case.record.get("integrity", {}).get("record_digest")
    if digest is not None:
        rest = {name: value for name, value in case.record.items() if name != "integrity"}
        try:
            yield from _compare("/provenance/integrity/record_digest", digest, jcs_bytes(rest))
        except NotJSON as error:
            yield _finding("/provenance/integrity/record_digest", f"cannot be computed: {error}", "digest")


def _signature(case: _Case) -> Iterator[Finding | str]:
    """Look at the signature.

    1. There is one, if the reader wants one.
    2. It is of the one algorithm that is known here, and its key's id can be read.
    3. Its key is one of the reader's, if the reader has any.
    4. It is of everything else in the envelope.
    """
    pointer = "/provenance/integrity/signature"
    signature = case.record.get("integrity", {}).get("signature")
    if signature is None:
        yield _finding("/provenance", "is not signed", "signature") if case.keys else "not signed"
        return
    if signature["alg"] != ALGORITHM:
        yield _finding(f"{pointer}/alg", f"must be {ALGORITHM}, the only one known here", "signature")
        return
    try:
        key = PublicKey.from_id(signature["key_id"])
    except BadKey as error:
        yield _finding(f"{pointer}/key_id", str(error), "signature")
        return
    if case.keys and key not in case.keys:
        yield _finding(f"{pointer}/key_id", "is none of the keys that were named", "signature")
        return
    try:
        is_true = key.verifies(signed_bytes(case.envelope), signature["value"])
    except NotJSON as error:
        yield _finding(pointer, f"cannot be checked: {error}", "signature")
        return
    if not is_true:
        yield _finding(f"{pointer}/value", "is not of this envelope; something was altered", "signature")
    else:
        yield f"signed by {key.key_id}{'' if case.keys else ', whoever that is: name the keys you trust'}"
