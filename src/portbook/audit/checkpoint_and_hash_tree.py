"""Checkpoints: what was known of the records of every writer at one moment. Pure: no I/O.

A writer is one file of a chained stream. It publishes segments: its next records, from the first to the
last. A checkpoint has a number, the hash of the one before it, and the root of a Merkle tree whose leaves
are the segments that were written since. Its hash is the SHA-256 of its body; a signature is one of its
body, too. As each follows from the one before, the newest checkpoint stands for every record that any of
them covers.

- `as_line`, `read_checkpoints`: checkpoints as JSON Lines: how they leave the store, for an auditor who has
  the files of the log alone.
- The Merkle tree: one hash that stands for many, and short paths that show one among them. The leaves are
  hashes, as hexadecimal digits. A node is the SHA-256 of the byte 1 and of its children's digits, 16
  children at most; the last node of a level may have fewer. Sixteen, not two: that takes half the work for
  each record, and a path of three levels is enough for 4,096 of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from portbook.audit.chain import GENESIS
from portbook.canonical import canonical_bytes
from portbook.model import JSONObject
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import sha256

if TYPE_CHECKING:
    from portbook.provenance.signing import PublicKey, Signer

__all__ = [
    "FAN_OUT",
    "BadCheckpointFile",
    "CheckpointBody",
    "CheckpointMark",
    "CheckpointRow",
    "CoveredRecords",
    "PrunedFile",
    "Segment",
    "TreeStep",
    "as_line",
    "checkpoint_of",
    "climb",
    "is_signed_by",
    "leaf_of",
    "path_of",
    "read_checkpoint",
    "read_checkpoints",
    "read_segment",
    "root_of",
    "tree_root",
]

_VERSION: Final = 1

# In front of a leaf, so that no node of the tree can be taken for one.
_LEAF: Final = b"\x00"
# In front of what is signed, so that no other signature of the same key can be taken for this one.
_SIGNED: Final = b"portbook checkpoint\n"

_MARK: Final = late_pattern(r"(?P<number>[1-9][0-9]{0,18}):(?P<hash>[0-9a-f]{64})")


class Segment(NamedTuple):
    """The records of one writer from `first` to `last`."""

    log: str
    """The folder of the records, after the name of its machine where machines share the store."""
    stream: str
    file: str
    first: int
    last: int
    head: str
    """The hash of the last record: it follows from every record before it."""
    records: str | None
    """The root of the tree over their hashes; None where the writer was killed long before."""


class PrunedFile(NamedTuple):
    """A file that was removed because `audit.keep` says so."""

    log: str
    stream: str
    file: str


class CheckpointRow(NamedTuple):
    """A checkpoint, as it is stored."""

    number: int
    body: str
    """What was hashed and signed: JSON."""
    hash: str
    key_id: str | None = None
    signature: str | None = None


class CoveredRecords(NamedTuple):
    """A checkpoint and the segments that it covers, in the order of its tree."""

    checkpoint: CheckpointRow
    segments: tuple[Segment, ...]


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


# Checkpoints as JSON Lines.


class BadCheckpointFile(ValueError):
    """A file that has no checkpoints; the message says where."""


def as_line(covered: CoveredRecords) -> JSONObject:
    """Return a checkpoint and its segments as a JSON object."""
    return {**covered.checkpoint._asdict(), "segments": [each._asdict() for each in covered.segments]}


def read_checkpoints(lines: Iterable[str]) -> list[CoveredRecords]:
    """Return the checkpoints in lines that `as_line` gave.

    Raises `BadCheckpointFile` where a line is none.
    """
    return [_read(line, number) for number, line in enumerate(lines, 1) if line.strip()]


def read_segment(data: Any) -> Segment:
    """Return a segment that was written as JSON.

    Raises `ValueError` where it is none.
    """
    return Segment(**_shaped(data, _SEGMENT))


def read_checkpoint(data: Any) -> CheckpointRow:
    """Return a checkpoint that was written as JSON.

    Raises `ValueError` where it is none.
    """
    return CheckpointRow(**_shaped(data, _CHECKPOINT))


_TEXT: Final = (str,)
_NUMBER: Final = (int,)
_MAYBE: Final = (str, type(None))
_SEGMENT: Final = {
    "log": _TEXT,
    "stream": _TEXT,
    "file": _TEXT,
    "first": _NUMBER,
    "last": _NUMBER,
    "head": _TEXT,
    "records": _MAYBE,
}
_CHECKPOINT: Final = {
    "number": _NUMBER,
    "body": _TEXT,
    "hash": _TEXT,
    "key_id": _MAYBE,
    "signature": _MAYBE,
}


def _shaped(data: Any, shape: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return the members of an object; raise `ValueError` where one is missing or of a wrong type."""
    if not isinstance(data, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the caller sent it, not the code
    found = cast("dict[str, Any]", data)
    for name, types in shape.items():
        if name not in found or type(found[name]) not in types:
            raise ValueError(f"{name} is missing or of a wrong type")
    return {name: found[name] for name in shape}


def _read(line: str, number: int) -> CoveredRecords:
    try:
        data = json.loads(line)
        return CoveredRecords(read_checkpoint(data), tuple(map(read_segment, data["segments"])))
    except (KeyError, TypeError, ValueError):
        said = f"line {number} is not a checkpoint, as `audit checkpoints` prints it"
        raise BadCheckpointFile(said) from None


# The Merkle tree.

FAN_OUT: Final = 16


class TreeStep(NamedTuple):
    """The siblings of a hash in one node, on its left and on its right."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def root_of(leaves: Sequence[bytes]) -> str:
    """Return the root over one or more leaves; a single leaf is its own root."""
    level = leaves
    while len(level) > 1:
        level = _next_level(level)
    return level[0].decode()


def path_of(leaves: Sequence[bytes], index: int) -> list[TreeStep]:
    """Return the steps from the leaf at `index` to the root."""
    steps: list[TreeStep] = []
    level = leaves
    while len(level) > 1:
        start = index - index % FAN_OUT
        steps.append(
            TreeStep(_digits(level[start:index]), _digits(level[index + 1 : start + FAN_OUT])),
        )
        level, index = _next_level(level), index // FAN_OUT
    return steps


def climb(leaf: str, path: Iterable[TreeStep]) -> str:
    """Return the root that a path leads to from `leaf`."""
    for before, after in path:
        leaf = _node([each.encode() for each in (*before, leaf, *after)]).decode()
    return leaf


def _next_level(level: Sequence[bytes]) -> list[bytes]:
    return [_node(level[start : start + FAN_OUT]) for start in range(0, len(level), FAN_OUT)]


def _node(children: Sequence[bytes]) -> bytes:
    return sha256(b"\x01" + b"".join(children)).hexdigest().encode()


def _digits(hashes: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(each.decode() for each in hashes)
