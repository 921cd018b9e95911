"""A proof leads from one record to a checkpoint, and from no other record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.audit.chain import GENESIS
from portbook.audit.checkpoint_and_hash_tree import (
    CheckpointMark,
    CoveredRecords,
    Segment,
    checkpoint_of,
    root_of,
)
from portbook.audit.inclusion_proof import BadProof, InclusionProof, check_proof, covering, proof_of
from portbook.audit.journal import chained
from portbook.provenance.signing import SigningKey

KEY = SigningKey(b"k" * 32)


def a_log(count: int) -> tuple[list[bytes], list[bytes], CoveredRecords]:
    hashes: list[bytes] = []
    written = chained([b'{"number":%d}' % number for number in range(count)], 0, GENESIS, hashes)[0]
    segment = Segment("log", "execution", "a.jsonl", 1, count, hashes[-1].decode(), root_of(hashes))
    segments = (segment, segment._replace(file="b.jsonl"), segment._replace(stream="intent"))
    row = checkpoint_of(None, segments, [], None, "2026-01-02T03:04:05.000Z", KEY)
    return written.splitlines(keepends=True), hashes, CoveredRecords(row, segments)


@pytest.mark.parametrize("count", [1, 2, 16, 17, 300])
def test_every_record_has_a_proof_that_is_read_as_it_was_written(count: int) -> None:
    lines, hashes, covered = a_log(count)
    for seq in {1, count // 2 + 1, count}:
        found = covering([covered], "execution", "a.jsonl", seq)
        assert found is not None
        proof = proof_of(lines[seq - 1], seq, hashes, found[1], covered)
        proven = check_proof(InclusionProof.read(json.dumps(proof.as_data())))
        assert proven.record["number"] == seq - 1
        assert (proven.signed_by, proven.is_anchored) == (KEY.key_id, False)
    assert covering([covered], "execution", "a.jsonl", count + 1) is None
    assert covering([covered], "execution", "c.jsonl", 1) is None


def a_proof() -> tuple[InclusionProof, CheckpointMark]:
    lines, hashes, covered = a_log(20)
    row = covered.checkpoint
    proof = proof_of(lines[4], 5, hashes, covered.segments[0], covered)
    return proof, CheckpointMark(row.number, row.hash)


def test_a_proof_is_anchored_by_a_noted_checkpoint_or_by_its_key() -> None:
    proof, mark = a_proof()
    assert check_proof(proof, [mark]).is_anchored
    assert check_proof(proof, keys=[KEY.key_id]).is_anchored
    with pytest.raises(BadProof, match="was not noted"):
        check_proof(proof, [CheckpointMark(1, "0" * 64)])
    with pytest.raises(BadProof, match="no key that was given"):
        check_proof(proof, keys=[SigningKey(b"o" * 32).key_id])


def test_a_proof_of_a_record_that_is_not_in_its_segment_is_refused() -> None:
    proof, _ = a_proof()
    lines, _, _ = a_log(21)
    for line in (lines[3].rstrip(), lines[20].rstrip(), b"{}", b""):
        with pytest.raises(BadProof):
            check_proof(proof._replace(line=line))
    with pytest.raises(BadProof, match="among those of its segment"):
        check_proof(proof._replace(path=[]))
    with pytest.raises(BadProof, match="does not cover"):
        check_proof(proof._replace(segment=proof.segment._replace(log="other")))
    with pytest.raises(BadProof, match="signature"):
        check_proof(proof._replace(checkpoint=proof.checkpoint._replace(key_id="x")))


def test_there_is_no_proof_without_a_tree() -> None:
    lines, hashes, covered = a_log(2)
    segment = covered.segments[0]._replace(records=None)
    with pytest.raises(BadProof, match="was killed"):
        proof_of(lines[0], 1, hashes, segment, covered)


@pytest.mark.parametrize(
    "change",
    [
        {"proof_version": 2},
        {"record": 1},
        {"path": [{"before": ["x"], "after": []}]},
        {"path": [{"before": ["0" * 64] * 16, "after": []}]},
        {"segment": {}},
        {"checkpoint": []},
    ],
)
def test_what_is_no_proof_is_refused(change: dict[str, Any]) -> None:
    data = {**a_proof()[0].as_data(), **change}
    with pytest.raises(BadProof, match="not a proof"):
        InclusionProof.read(json.dumps(data))
