"""Inclusion proofs: one record, and the hashes that lead from it to a checkpoint. Pure: no I/O.

A proof holds no other record: only the hashes of its siblings. Who knows the checkpoint, or the key that
signed it, can check the proof without the log.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, cast

from portbook.audit.chain import GENESIS, head_of
from portbook.audit.checkpoint_and_hash_tree import (
    FAN_OUT,
    CheckpointBody,
    CheckpointMark,
    CheckpointRow,
    CoveredRecords,
    Segment,
    TreeStep,
    climb,
    is_signed_by,
    leaf_of,
    path_of,
    read_checkpoint,
    read_segment,
)
from portbook.model import JSONObject
from portbook.provenance.signing import BadKey, PublicKey
from portbook.text.named_tuple import NamedTuple

__all__ = ["BadProof", "InclusionProof", "ProvenRecord", "check_proof", "covering", "proof_of"]

_VERSION: Final = 1


class BadProof(ValueError):
    """A proof that proves nothing; the message says why."""


class InclusionProof(NamedTuple):
    """A record, the segment that it is in, and the checkpoint that covers the segment."""

    line: bytes
    path: Sequence[TreeStep]
    """From the hash of the record to the root of its segment."""
    segment: Segment
    segment_path: Sequence[TreeStep]
    """From the leaf of the segment to the root of the checkpoint."""
    checkpoint: CheckpointRow

    def as_data(self) -> JSONObject:
        """Return the proof as JSON."""
        return {
            "proof_version": _VERSION,
            "record": self.line.decode(),
            "path": [_as_step(step) for step in self.path],
            "segment": self.segment._asdict(),
            "segment_path": [_as_step(step) for step in self.segment_path],
            "checkpoint": self.checkpoint._asdict(),
        }

    @classmethod
    def read(cls, text: str) -> InclusionProof:
        """Return the proof in a JSON document.

        Raises `BadProof` where there is none.
        """
        try:
            data = json.loads(text)
            _require_version(data["proof_version"])
            return cls(
                cast("str", data["record"]).encode(),
                [_read_step(each) for each in data["path"]],
                read_segment(data["segment"]),
                [_read_step(each) for each in data["segment_path"]],
                read_checkpoint(data["checkpoint"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise BadProof("it is not a proof, as `audit prove` prints it") from None


class ProvenRecord(NamedTuple):
    """What a proof proves."""

    record: JSONObject
    checkpoint: CheckpointMark
    at: str
    """When the checkpoint was made: the record is at least as old."""
    signed_by: str | None
    is_anchored: bool
    """Whether the checkpoint is one that was noted, or is signed by a key that is trusted. Without that, only
    who made the proof vouches for it."""


def covering(
    covered: Iterable[CoveredRecords], stream: str, file: str, seq: int
) -> tuple[CoveredRecords, Segment] | None:
    """Return the checkpoint that covers a record, and the segment that it is in, if there is one.

    The name of a file is used once, so that it does not matter where the file was when it was covered.
    """
    for each in covered:
        for segment in each.segments:
            is_same_file = (segment.stream, segment.file) == (stream, file)
            if is_same_file and segment.first <= seq <= segment.last:
                return each, segment
    return None


def proof_of(
    line: bytes, seq: int, hashes: Sequence[bytes], segment: Segment, covered: CoveredRecords
) -> InclusionProof:
    """Return the proof of the record `seq`; `hashes` are those of all records of its segment.

    Raises `BadProof` where the segment has no tree, or the records are not those that the checkpoint covers.
    """
    if segment.records is None:
        raise BadProof("its process was killed, and the checkpoint after that knows the last record alone")
    leaves = [leaf_of(each).encode() for each in covered.segments]
    place = covered.segments.index(segment)
    proof = InclusionProof(
        line.rstrip(b"\n"),
        path_of(hashes, seq - segment.first),
        segment,
        path_of(leaves, place),
        covered.checkpoint,
    )
    check_proof(proof)
    return proof


def check_proof(
    proof: InclusionProof, noted: Collection[CheckpointMark] = (), keys: Collection[str] = ()
) -> ProvenRecord:
    """Check a proof.

    1. The record matches its own hash, and is one of its segment.
    2. Its path leads to the root of the segment.
    3. The leaf of the segment leads to the root of the checkpoint.
    4. The signature, if there is one, is of the checkpoint.
    5. The checkpoint is one of those `noted`, or signed by one of the `keys`, where either is given.

    Raises `BadProof` where one of these is not so.
    """
    segment, row = proof.segment, proof.checkpoint
    head = head_of(segment.file, proof.line + b"\n")
    if head is None or not segment.first <= head.seq <= segment.last:
        raise BadProof("the record does not match its hash, or is not one of its segment")
    if segment.records is None or climb(head.hash, proof.path) != segment.records:
        raise BadProof("the record is not among those of its segment")
    body = CheckpointBody.read(row)
    if body is None or climb(leaf_of(segment), proof.segment_path) != body.root:
        raise BadProof("the checkpoint does not cover the segment of the record")
    if row.signature is not None and not _is_well_signed(row):
        raise BadProof("the signature is not one of the checkpoint")
    mark = CheckpointMark(row.number, row.hash)
    is_signed = row.signature is not None and row.key_id in keys
    if (noted or keys) and mark not in noted and not is_signed:
        raise BadProof("the checkpoint was not noted, and no key that was given has signed it")
    record = cast("JSONObject", json.loads(proof.line))
    return ProvenRecord(record, mark, body.at, row.key_id, mark in noted or is_signed)


def _is_well_signed(row: CheckpointRow) -> bool:
    try:
        return is_signed_by(row, PublicKey.from_id(row.key_id or ""))
    except BadKey:
        return False


def _require_version(version: object) -> None:
    if version != _VERSION:
        raise ValueError("a version that this one does not know")


def _as_step(step: TreeStep) -> JSONObject:
    return {"before": list(step.before), "after": list(step.after)}


def _read_step(data: Any) -> TreeStep:
    step = TreeStep(tuple(data["before"]), tuple(data["after"]))
    if len(step.before) + len(step.after) >= FAN_OUT or not all(map(_is_hash, (*step.before, *step.after))):
        raise ValueError("not a step")
    return step


def _is_hash(text: Any) -> bool:
    return isinstance(text, str) and len(text) == len(GENESIS) and text.isascii() and text.isalnum()
