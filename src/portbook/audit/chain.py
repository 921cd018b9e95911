"""The lines of a hash chain, read: each has a number and the hash of its predecessor. Pure: no I/O.

A line is `{"seq":…,"prev":…,…,"hash":…}`. Its hash is the sha256 of its bytes without that last member.
`prev` is the hash of the line before. In the first line of a file it names, as `<file>#<seq>:<hash>` joined
by spaces, the last record of every file that no further file had followed when this one was started; it is 64
zeros where there was none. A final ` from <file>` says that files older than that one were due for pruning.
"""

from __future__ import annotations

from typing import Final

import orjson

from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import sha256

__all__ = [
    "GENESIS",
    "HASH_DIGITS",
    "ChainLine",
    "Head",
    "Links",
    "digest_of",
    "head_of",
    "links_of",
    "read_line",
]

HASH_DIGITS: Final = 64
GENESIS: Final = "0" * HASH_DIGITS

_HASH_MEMBER: Final = late_pattern(rb',"hash":"([0-9a-f]{64})"\}\Z')
_NAME: Final = r"[^#/ ]+"
_HEAD: Final = late_pattern(rf"(?P<file>{_NAME})#(?P<seq>[1-9][0-9]{{0,18}}):(?P<hash>[0-9a-f]{{64}})")
_FROM: Final = late_pattern(rf"(?P<heads>.+) from (?P<oldest>{_NAME})")


class Head(NamedTuple):
    """A record's file, number and hash, which the next record follows."""

    file: str
    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.file}#{self.seq}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> Head | None:
        """Parse a head; return None if `text` is not one."""
        match = _HEAD.fullmatch(text)
        return None if match is None else cls(match["file"], int(match["seq"]), match["hash"])


class Links(NamedTuple):
    """What the first record of a file states about the files before it."""

    heads: tuple[Head, ...] = ()
    """The records that it follows."""
    oldest: str | None = None
    """The oldest file to keep when this one was started; None if there was none to prune."""

    def __str__(self) -> str:
        if not self.heads:
            return GENESIS
        return " ".join(map(str, self.heads)) + (f" from {self.oldest}" if self.oldest else "")

    @classmethod
    def read(cls, text: str) -> Links | None:
        """Parse links; return None if `text` has none."""
        if text == GENESIS:
            return cls()
        pruned = _FROM.fullmatch(text)
        heads = [Head.read(word) for word in (pruned["heads"] if pruned else text).split(" ")]
        found = tuple(head for head in heads if head is not None)
        return cls(found, pruned["oldest"] if pruned else None) if len(found) == len(heads) else None


class ChainLine(NamedTuple):
    """What a record says of its place in the chain."""

    seq: int
    prev: str
    hash: str


def head_of(file: str, line: bytes) -> Head | None:
    """Return the head of a record; None for a line that is not a record, or was altered."""
    read = _as_written(line)
    return None if read is None else Head(file, read.seq, read.hash)


def links_of(line: bytes) -> Links:
    """Return the links in the first line of a file; empty if the line was altered."""
    read = _as_written(line)
    return (Links.read(read.prev) if read else None) or Links()


def read_line(line: bytes) -> ChainLine | None:
    """Parse the chain members of a line; return None if it is not a complete record."""
    member = _HASH_MEMBER.search(line[:-1]) if line.endswith(b"\n") else None
    if member is None:
        return None
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    seq, prev = record.get("seq"), record.get("prev")
    if type(seq) is not int or not isinstance(prev, str):
        return None
    return ChainLine(seq, prev, member[1].decode())


def _as_written(line: bytes) -> ChainLine | None:
    read = read_line(line)
    return read if read and digest_of(line) == read.hash else None


def digest_of(line: bytes) -> str:
    """Return the hash of a record's line without its hash member."""
    return sha256(_HASH_MEMBER.sub(b"}", line[:-1])).hexdigest()
