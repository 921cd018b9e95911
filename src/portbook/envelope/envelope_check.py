"""Verifies envelopes: schema, methods, anchors, digests and signature.

It stops after the first check if that fails; all other checks are always made:

1. The envelope matches its schema.
2. Its result is not an envelope.
3. Its record has unique artifact ids, valid method ids, and no method that was not applied.
4. Its anchors name artifacts of the record and, where their content is available, parts that exist.
5. The digests of available artifacts, and of the record, match.
6. Its signature covers everything else in it, and is by one of the reader's keys if the reader has any.

Available are the result, which is in the envelope, and the contents that the reader passes: nothing is
fetched, and no locator is followed. No I/O, except to read the schema where none is passed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from portbook.canonical import NotJSON, jcs_bytes
from portbook.envelope.result_put_into_envelope import envelope_schema, is_envelope
from portbook.errors import Finding, Refused
from portbook.model import JSON
from portbook.provenance.anchors import parse_anchor, resolves
from portbook.provenance.artifacts import digested_bytes, is_json
from portbook.provenance.method_ids import PROMISES, flaw_of
from portbook.provenance.record_inputs_and_outputs import ARGUMENTS, RESULT
from portbook.provenance.signing import ALGORITHM, BadKey, PublicKey, signed_bytes
from portbook.schema.engine import Validator
from portbook.schema.violation_wording import shorten
from portbook.wire.parsing import parse

__all__ = ["Inspection", "inspect_envelope"]

# The algorithms of the contract that Python has; the third, BLAKE3, it does not have.
_HASHES: Final = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}


class Inspection(NamedTuple):
    """The result of verifying an envelope."""

    findings: tuple[Finding, ...]
    """The problems, ordered by pointer; `keyword` is the check."""
    notes: tuple[str, ...]
    """What could not be verified, and the key that signed."""

    @property
    def is_sound(self) -> bool:
        """Return whether there are no findings."""
        return not self.findings


class _Case(NamedTuple):
    """An envelope that matches its schema, its record, and the available contents."""

    envelope: dict[str, Any]
    record: dict[str, Any]
    given: Mapping[str, bytes]
    keys: Sequence[PublicKey]

    @property
    def artifacts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield every artifact of the record, with its pointer."""
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
    """Verify `envelope`: its schema, methods, anchors, digests and signature.

    `artifacts` are the contents that the reader has, by artifact id. With `keys`, one of them must have
    signed it. `schema` is that of `mcp.envelope.v0.1`, by default the shipped one.
    """
    schema = schema or envelope_schema()
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


def _finding(pointer: str, message: str, check: str) -> Finding:
    return Finding(pointer, message, check, "")


def _nesting(case: _Case) -> Iterator[Finding]:
    if is_envelope(case.envelope["result"]):
        yield _finding("/result", "is already an envelope; return it unchanged", "double-wrap")


def _names(case: _Case) -> Iterator[Finding]:
    seen: set[str] = set()
    for pointer, artifact in case.artifacts:
        if artifact["artifact_id"] in seen:
            yield _finding(
                f"{pointer}/artifact_id", "an earlier artifact has this id; use unique ids", "artifact"
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
                yield _finding(pointer, f"names a method that was not applied: {otherwise}", "method")


def _evidence(case: _Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every piece of evidence, with its pointer."""
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
            message = (
                "is not an anchor; write artifact:<id>, with #json:/pointer or #text:line:12-14 for a part"
            )
            yield _finding(f"{pointer}/source", message, "anchor")
        elif anchor.artifact_id not in artifacts:
            yield _finding(f"{pointer}/source", "does not name an artifact of the record", "anchor")
        elif not all(resolves(anchor, content) for content in _readable(case, artifacts[anchor.artifact_id])):
            yield _finding(f"{pointer}/source", "names a part that the artifact does not have", "anchor")
        if flaw := flaw_of(item["method"]) if "method" in item else None:
            yield _finding(f"{pointer}/method", flaw, "method")


def _is_result(artifact: dict[str, Any]) -> bool:
    return artifact["artifact_id"] == RESULT or artifact.get("labels", {}).get("role") == RESULT


def _contents(case: _Case, artifact: dict[str, Any]) -> Iterator[JSON | bytes]:
    """Yield an artifact's content from every available source.

    Raises `NotJSON` where its type is JSON and the reader's content is not.
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
    """Yield an artifact's content where it is available as JSON or text."""
    try:
        for content in _contents(case, artifact):
            yield content.decode() if isinstance(content, bytes) else content
    except (NotJSON, UnicodeDecodeError):
        return  # the check of its digest reports it


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
        yield f"content not available, so not compared: {', '.join(unseen)}"
    if undigested:
        yield f"without a digest, so not compared: {', '.join(undigested)}"


def _compare(pointer: str, digest: dict[str, str], content: bytes) -> Iterator[Finding | str]:
    if digest["alg"] not in _HASHES:
        yield f"{pointer}: {digest['alg']} cannot be computed here, so it was not compared"
    elif _HASHES[digest["alg"]](content).hexdigest() != digest["value"]:
        yield _finding(f"{pointer}/value", "does not match the content", "digest")


def _record_digest(case: _Case) -> Iterator[Finding | str]:
    digest = case.record.get("integrity", {}).get("record_digest")
    if digest is not None:
        rest = {name: value for name, value in case.record.items() if name != "integrity"}
        try:
            yield from _compare("/provenance/integrity/record_digest", digest, jcs_bytes(rest))
        except NotJSON as error:
            yield _finding("/provenance/integrity/record_digest", f"cannot be computed: {error}", "digest")


def _signature(case: _Case) -> Iterator[Finding | str]:
    """Verify the signature.

    1. It exists, if the reader has keys.
    2. Its algorithm is supported, and its key id is valid.
    3. Its key is one of the reader's, if the reader has any.
    4. It matches everything else in the envelope.
    """
    pointer = "/provenance/integrity/signature"
    signature = case.record.get("integrity", {}).get("signature")
    if signature is None:
        yield _finding("/provenance", "is not signed", "signature") if case.keys else "not signed"
        return
    if signature["alg"] != ALGORITHM:
        yield _finding(f"{pointer}/alg", f"must be {ALGORITHM}, the only supported algorithm", "signature")
        return
    try:
        key = PublicKey.from_id(signature["key_id"])
    except BadKey as error:
        yield _finding(f"{pointer}/key_id", str(error), "signature")
        return
    if case.keys and key not in case.keys:
        yield _finding(f"{pointer}/key_id", "is not one of the given keys", "signature")
        return
    try:
        is_true = key.verifies(signed_bytes(case.envelope), signature["value"])
    except NotJSON as error:
        yield _finding(pointer, f"cannot be checked: {error}", "signature")
        return
    if not is_true:
        yield _finding(f"{pointer}/value", "does not match this envelope, which was altered", "signature")
    else:
        yield f"signed by {key.key_id}{'' if case.keys else ', an unverified key: pass the keys you trust'}"
