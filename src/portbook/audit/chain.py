"""The chain through a stream of records: each is numbered and holds the hash of the one before. Pure: no I/O.

A line is `{"seq":…,"prev":…,…,"hash":…}`. Its hash is the sha256 of its bytes without that last member.
`prev` is the hash of the line before; in the first line of a file it names the last record of every other
file that no third one followed so far when this one was begun, as `<file>#<seq>:<hash>`, parted by spaces, or
is 64 zeros where there was none. ` from <file>` behind them says that what was older had had its time.

What was altered, taken out or put elsewhere is found. What is not: records that were cut off at the end of a
file before another one followed them, and a chain made anew from some record to its end. Against both, keep
the last hash of each file somewhere else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import orjson

from portbook.canonical import json_bytes
from portbook.model import JSONObject

__all__ = [
    "GENESIS",
    "Break",
    "ChainVerdict",
    "Head",
    "Links",
    "Problem",
    "chained",
    "head_of",
    "line_of",
    "links_of",
    "verify",
]

GENESIS: Final = "0" * 64

Problem: TypeAlias = Literal["not_json", "altered", "missing", "out_of_order", "predecessor_lost"]

_HASH_MEMBER: Final = re.compile(rb',"hash":"([0-9a-f]{64})"\}\Z')
_NAME: Final = r"[^#/ ]+"
_HEAD: Final = re.compile(rf"(?P<file>{_NAME})#(?P<seq>[1-9][0-9]{{0,18}}):(?P<hash>[0-9a-f]{{64}})")
_FROM: Final = re.compile(rf"(?P<heads>.+) from (?P<oldest>{_NAME})")


class Head(NamedTuple):
    """A record by its place and its hash: what the next one follows."""

    file: str
    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.file}#{self.seq}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> Head | None:
        """Return the head that `text` spells; None if it spells none."""
        match = _HEAD.fullmatch(text)
        return None if match is None else cls(match["file"], int(match["seq"]), match["hash"])


class Links(NamedTuple):
    """What the first record of a file says of the others."""

    heads: tuple[Head, ...] = ()
    """The records that it follows."""
    oldest: str | None = None
    """The oldest file that was to be kept when this one was begun; None if there was none to prune."""

    def __str__(self) -> str:
        if not self.heads:
            return GENESIS
        return " ".join(map(str, self.heads)) + (f" from {self.oldest}" if self.oldest else "")

    @classmethod
    def read(cls, text: str) -> Links | None:
        """Return the links that `text` spells; None if it spells none."""
        if text == GENESIS:
            return cls()
        pruned = _FROM.fullmatch(text)
        heads = [Head.read(word) for word in (pruned["heads"] if pruned else text).split(" ")]
        found = tuple(head for head in heads if head is not None)
        return cls(found, pruned["oldest"] if pruned else None) if len(found) == len(heads) else None


@dataclass(frozen=True, slots=True)
class Break:
    """The first place at which a chain does not hold."""

    file: str
    line: int
    seq: int | None
    """The number of the record, as far as it says one; of one that is missing, the number it had."""
    problem: Problem
    sentence: str


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """What was found in a stream."""

    files: int
    records: int
    """How many were found good, up to the first that is not."""
    heads: tuple[Head, ...]
    """The last of them in each file that has any, the oldest file first: what to keep elsewhere."""
    is_pruned: bool
    """Whether older files were there once; they go by age, and the chain starts behind them."""
    cut: tuple[str, ...]
    """Files that end in the middle of a record: their process was killed before it had written it."""
    broken: Break | None

    @property
    def head(self) -> Head | None:
        """The last record of the newest file that has any."""
        return self.heads[-1] if self.heads else None


class _ChainLine(NamedTuple):
    seq: int
    prev: str
    hash: str


def line_of(record: Mapping[str, Any]) -> bytes:
    """Return `record` as compact JSON."""
    try:
        # Not `json_bytes`: its search for NaN would take longer than the writing, and a record has none.
        return orjson.dumps(record)
    except orjson.JSONEncodeError:  # a whole number of a caller's, longer than orjson writes
        return json_bytes(record)


def chained(record: JSONObject, seq: int, prev: str) -> tuple[bytes, str]:
    """Return `record` as a line of the chain, and its hash."""
    body = line_of({"seq": seq, "prev": prev, **record})
    digest = hashlib.sha256(body).hexdigest()
    return b'%b,"hash":"%b"}\n' % (body[:-1], digest.encode()), digest


def head_of(file: str, line: bytes) -> Head | None:
    """Return the place and the hash of a record; None for a line that is none, or not as it was written."""
    read = _as_written(line)
    return None if read is None else Head(file, read.seq, read.hash)


def links_of(line: bytes) -> Links:
    """Return what the first line of a file says of the others; nothing, if it is not as it was written."""
    read = _as_written(line)
    return (Links.read(read.prev) if read else None) or Links()


def verify(
    files: Mapping[str, Callable[[], Iterable[bytes]]], keep: int, noted: Iterable[Head] = ()
) -> ChainVerdict:
    """Follow the chain through `files`, each of which gives its lines as often as it is asked.

    `noted` are records that somebody wrote down when they were the newest: they must be there still.

    A file that others follow and that is not there was pruned if at least `keep` newer ones are there, or if
    one that is there says so: more may be kept now than were then.
    """
    names = sorted(files)
    links = {name: links_of(next(iter(files[name]()), b"")) for name in names}
    wanted: dict[str, list[_Wanted]] = {}
    for each in _wanted(links, noted):
        wanted.setdefault(each.link.file, []).append(each)
    gone = {name for name in wanted if name not in files}
    oldest = max((each.oldest or "" for each in links.values()), default="")
    pruned = {name for name in gone if name < oldest or sum(other > name for other in names) >= keep}
    lost = {each.place: _lost(each) for name in sorted(gone - pruned) for each in wanted[name]}
    walks: list[_Walk] = []
    broken: Break | None = None
    for name in names:
        walks.append(walk := _Walk(name, wanted.get(name, [])))
        if broken := lost.get(name) or walk.through(files[name]()):
            break
    return ChainVerdict(
        files=len(names),
        records=sum(walk.records for walk in walks),
        heads=tuple(walk.head for walk in walks if walk.head),
        is_pruned=bool(pruned),
        cut=tuple(walk.name for walk in walks if walk.is_cut),
        broken=broken or lost.get(_NOTED),
    )


# The place of a record that no file names.
_NOTED: Final = ""


class _Wanted(NamedTuple):
    """A record that has to be there."""

    link: Head
    reason: str
    place: str
    """The file that follows it, or `_NOTED`."""


def _wanted(links: Mapping[str, Links], noted: Iterable[Head]) -> Iterator[_Wanted]:
    for name, (heads, _) in links.items():
        for head in heads:
            yield _Wanted(head, f"{name} follows it", name)
    for head in noted:
        yield _Wanted(head, "it was noted", _NOTED)


def _lost(wanted: _Wanted) -> Break:
    link = wanted.link
    sentence = f"record {link.seq} of {link.file} is lost with its file, and {wanted.reason}"
    return Break(wanted.place or link.file, 1, 1 if wanted.place else link.seq, "predecessor_lost", sentence)


class _Walk:
    """Follows the chain through one file."""

    def __init__(self, name: str, wanted: list[_Wanted]) -> None:
        self.name = name
        self.head: Head | None = None
        self.records = 0
        self.is_cut = False
        self._line = 0
        self._wanted: dict[int, list[_Wanted]] = {}
        for each in wanted:
            self._wanted.setdefault(each.link.seq, []).append(each)

    def through(self, lines: Iterable[bytes]) -> Break | None:
        """Go from the first line to the last; return what is wrong with the first that is."""
        for line in lines:
            if not line.endswith(b"\n"):
                self.is_cut = True  # it can only be the last, and nobody was told that it is there
            elif broken := self._step(line):
                return broken
            else:
                self.records += 1
        return self._end()

    def _step(self, line: bytes) -> Break | None:
        """Take the next line; return what is wrong with it.

        1. It is a record at all: nothing else could be asked of it.
        2. Its hash is that of its bytes: what it says of itself below is then what was written.
        3. Its number is the next one.
        4. It follows the record before it.
        5. It is the record that another file says it follows.
        """
        self._line += 1
        read = _read(line)
        if read is None:
            return self._break(
                None, "not_json", "is not a whole record: one line of JSON with seq, prev and hash"
            )
        if _digest(line) != read.hash:
            return self._break(read.seq, "altered", "does not have the content that its hash was made of")
        expected = 1 if self.head is None else self.head.seq + 1
        if read.seq > expected:
            return self._break(
                read.seq, "missing", f"stands where record {expected} should: that one is missing"
            )
        if read.seq < expected:
            return self._break(read.seq, "out_of_order", f"stands where record {expected} should")
        if not self._follows(read.prev):
            sentence = "does not follow the record before it: one of the two was altered or exchanged"
            return self._break(read.seq, "altered", sentence)
        for link, reason, _ in self._wanted.pop(read.seq, ()):
            if link.hash != read.hash:
                return self._break(read.seq, "altered", f"was another when {reason}")
        self.head = Head(self.name, read.seq, read.hash)
        return None

    def _end(self) -> Break | None:
        """Return what is wrong with where the file ends."""
        if not self._wanted:
            return None
        seq = min(self._wanted)
        self._line += 1
        sentence = f"is missing at the end of the file, and {self._wanted[seq][0].reason}"
        return self._break(seq, "missing", sentence)

    def _follows(self, prev: str) -> bool:
        if self.head is not None:
            return prev == self.head.hash
        return Links.read(prev) is not None

    def _break(self, seq: int | None, problem: Problem, sentence: str) -> Break:
        return Break(self.name, self._line, seq, problem, sentence)


def _read(line: bytes) -> _ChainLine | None:
    """Return what a line says of itself; None if it is not a whole record."""
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
    return _ChainLine(seq, prev, member[1].decode())


def _as_written(line: bytes) -> _ChainLine | None:
    read = _read(line)
    return read if read and _digest(line) == read.hash else None


def _digest(line: bytes) -> str:
    """Return the hash of a record's line as it was before it had one."""
    return hashlib.sha256(_HASH_MEMBER.sub(b"}", line[:-1])).hexdigest()
