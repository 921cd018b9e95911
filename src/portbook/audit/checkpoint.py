"""Checkpoints: what was known of the records of every writer at one moment. Pure: no I/O.

A checkpoint has a number, the hash of the one before it, and the root of a Merkle tree whose leaves are the
segments that were written since. Its hash is the SHA-256 of its body; a signature is one of its body, too. As
each follows from the one before, the newest checkpoint stands for every record that any of them covers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from portbook.audit.chain import GENESIS
from portbook.audit.merkle_tree import root_of
from portbook.canonical import canonical_bytes
from portbook.model import JSONObject
from portbook.provenance.signing import PublicKey, Signer
from portbook.stores.checkpoints import CheckpointRow, PrunedFile, Segment
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = ["CheckpointBody", "CheckpointMark", "checkpoint_of", "is_signed_by", "leaf_of", "tree_root"]

_VERSION: Final = 1

# In front of a leaf, so that no node of the tree can be taken for one.
_LEAF: Final = b"\x00"
# In front of what is signed, so that no other signature of the same key can be taken for this one.
_SIGNED: Final = b"portbook checkpoint\n"

_MARK: Final = late_pattern(r"(?P<number>[1-9][0-9]{0,18}):(?P<hash>[0-9a-f]{64})")


class CheckpointMark(NamedTuple):
    """A checkpoint's number and hash, to be noted in a different place."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> CheckpointMark | None:
        """Parse a mark; return None if `text` is not one."""
        match = _MARK.fullmatch(text)
        return None if match is None else cls(int(match["number"]), match["hash"])


class CheckpointBody(NamedTuple):
    """What a checkpoint states."""

    number: int
    at: str
    prev: str
    segments: int
    """How many segments it covers."""
    root: str
    pruned: tuple[PrunedFile, ...]
    """The files that `audit.keep` removed since the one before it."""
    floor: int
    """The oldest checkpoint that was kept when it was made."""

    @classmethod
    def read(cls, row: CheckpointRow) -> CheckpointBody | None:
        """Return what a checkpoint states; None where it was altered, or is of an unknown version."""
        if sha256(row.body.encode()).hexdigest() != row.hash:
            return None
        try:
            body = json.loads(row.body)
            if body["checkpoint_version"] != _VERSION or body["number"] != row.number:
                return None
            return cls(
                body["number"],
                body["at"],
                body["prev"],
                body["segments"],
                body["root"],
                tuple(PrunedFile(**each) for each in body["pruned"]),
                body["from"] or 1,
            )
        except (KeyError, TypeError, ValueError):
            return None


def leaf_of(segment: Segment) -> str:
    """Return the leaf of a segment in the tree of its checkpoint."""
    return sha256(_LEAF + canonical_bytes(segment._asdict())).hexdigest()


def checkpoint_of(
    before: CheckpointRow | None,
    segments: Sequence[Segment],
    pruned: Iterable[PrunedFile],
    floor: int | None,
    at: str,
    signer: Signer | None,
) -> CheckpointRow:
    """Return the checkpoint after `before`; those with a number below `floor` are deleted with it."""
    number = 1 if before is None else before.number + 1
    body: JSONObject = {
        "checkpoint_version": _VERSION,
        "number": number,
        "at": at,
        "prev": GENESIS if before is None else before.hash,
        "segments": len(segments),
        "root": tree_root(segments),
        "pruned": [each._asdict() for each in pruned],
        "from": floor,
    }
    written = canonical_bytes(body)
    signature = None if signer is None else signer.sign(_SIGNED + written)
    key_id = None if signer is None else signer.key_id
    return CheckpointRow(number, written.decode(), sha256(written).hexdigest(), key_id, signature)


def is_signed_by(checkpoint: CheckpointRow, key: PublicKey) -> bool:
    """Return whether the signature of a checkpoint is one of this key."""
    signed = _SIGNED + checkpoint.body.encode()
    return checkpoint.signature is not None and key.verifies(signed, checkpoint.signature)


def tree_root(segments: Sequence[Segment]) -> str:
    """Return the root of the tree over segments."""
    return root_of([leaf_of(each).encode() for each in segments]) if segments else GENESIS
