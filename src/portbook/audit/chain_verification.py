"""Verifies the hash chain through the files of a stream, and says where it is broken. Pure: no I/O.

It finds records that were altered, removed or moved. On its own it does not find records that were cut off at
the end of a file before a new file followed them, nor a chain that was recomputed from some record to its
end. Checkpoints show both; so does the last hash of a file that was kept in a different place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from portbook.audit.chain import Head, Links, digest_of, links_of, read_line
from portbook.text.named_tuple import NamedTuple

__all__ = ["Break", "ChainVerdict", "CoveredHead", "Problem", "verify"]

Problem: TypeAlias = Literal[
    "not_json", "altered", "missing", "out_of_order", "predecessor_lost", "file_lost", "copied"
]


class CoveredHead(NamedTuple):
    """The newest record of a file at a checkpoint."""

    head: Head
    checkpoint: int


class Break(NamedTuple):
    """The first place at which a chain is broken."""

    file: str
    line: int
    seq: int | None
    """The number of the record, if it has one; for a missing record, the number it had."""
    problem: Problem
    sentence: str


class ChainVerdict(NamedTuple):
    """The result of verifying a stream."""

    files: int
    records: int
    """How many records are valid, up to the first that is not."""
    heads: tuple[Head, ...]
    """The last valid record of each file that has any, oldest file first: keep these in a different place."""
    is_pruned: bool
    """Whether older files have been pruned; the chain starts after them."""
    cut: tuple[str, ...]
    """Files that end in the middle of a record, because their process was killed while writing it."""
    broken: Break | None

    @property
    def head(self) -> Head | None:
        """The last record of the newest file that has any."""
        return self.heads[-1] if self.heads else None


def verify(
    files: Mapping[str, Callable[[], Iterable[bytes]]],
    keep: int,
    noted: Iterable[Head] = (),
    covered: Sequence[CoveredHead] = (),
    removed: Collection[str] = (),
) -> ChainVerdict:
    """Verify the chain through `files`; each value returns the lines of its file on every call.

    `noted` are records that the operator noted when they were the newest, `covered` those that were the
    newest of their file at a checkpoint: they must still exist.

    A missing file that further files follow counts as pruned if at least `keep` newer ones exist, or if one
    of them says so, because `keep` may have been smaller at that time. So does a file among the `removed`,
    which a checkpoint states. The number of newer files excuses none that a checkpoint covers: copies of any
    file would do.
    """
    names = sorted(files)
    firsts = {name: next(iter(files[name]()), b"") for name in names}
    links = {name: links_of(line) for name, line in firsts.items()}
    original = {line: name for name, line in reversed(firsts.items()) if line}
    wanted: dict[str, list[_Wanted]] = {}
    for each in _wanted(links, noted, covered):
        wanted.setdefault(each.link.file, []).append(each)
    gone = {name for name in wanted if name not in files}
    oldest = max((each.oldest or "" for each in links.values()), default="")
    pruned = {name for name in gone if name in removed or name < oldest}
    unsaid = gone - pruned - {head.file for head, _ in covered}
    pruned |= {name for name in unsaid if sum(other > name for other in names) >= keep}
    # The oldest file last, and of each file the last record: these are the ones that are named.
    lost = {each.place: _lost(each) for name in sorted(gone - pruned, reverse=True) for each in wanted[name]}
    walks: list[_Walk] = []
    broken: Break | None = None
    for name in names:
        walks.append(walk := _Walk(name, wanted.get(name, [])))
        is_copy = original.get(firsts[name], name) != name
        found = _copied(name, original[firsts[name]]) if is_copy else walk.through(files[name]())
        if broken := lost.get(name) or found:
            break
    return ChainVerdict(
        files=len(names),
        records=sum(walk.records for walk in walks),
        heads=tuple(walk.head for walk in walks if walk.head),
        is_pruned=bool(pruned),
        cut=tuple(walk.name for walk in walks if walk.is_cut),
        broken=broken or lost.get(_NOTED) or lost.get(_COVERED),
    )


# The places of records that no file names: one was noted, or a checkpoint covers it.
_NOTED: Final = "#noted"
_COVERED: Final = "#covered"


class _Wanted(NamedTuple):
    """A record that must exist."""

    link: Head
    reason: str
    place: str
    """The file that follows it, `_NOTED` or `_COVERED`."""


def _wanted(
    links: Mapping[str, Links], noted: Iterable[Head], covered: Iterable[CoveredHead]
) -> Iterator[_Wanted]:
    for name, (heads, _) in links.items():
        for head in heads:
            yield _Wanted(head, f"{name} follows it", name)
    for head in noted:
        yield _Wanted(head, "it was noted", _NOTED)
    for head, checkpoint in covered:
        yield _Wanted(head, f"checkpoint {checkpoint} covers it", _COVERED)


def _copied(name: str, original: str) -> Break:
    """Return the break of a file that was added: every record of a run is in one file, and in none twice."""
    return Break(name, 1, 1, "copied", f"{name} begins as {original} does; one of them is a copy")


def _lost(wanted: _Wanted) -> Break:
    link = wanted.link
    sentence = f"record {link.seq} of {link.file} is lost with its file, and {wanted.reason}"
    if wanted.place == _COVERED:
        return Break(link.file, 1, link.seq, "file_lost", sentence)
    if wanted.place == _NOTED:
        return Break(link.file, 1, link.seq, "predecessor_lost", sentence)
    return Break(wanted.place, 1, 1, "predecessor_lost", sentence)


class _Walk:
    """Verifies the chain through one file."""

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
        """Verify every line; return the first break."""
        for line in lines:
            if not line.endswith(b"\n"):
                self.is_cut = True  # only the last line can be, and its call was never acknowledged
            elif broken := self._step(line):
                return broken
            else:
                self.records += 1
        return self._end()

    def _step(self, line: bytes) -> Break | None:
        """Verify the next line; return the break, if any.

        1. It is a record, which the next checks need.
        2. Its hash matches its bytes, so its other members are as written.
        3. Its number is the next one.
        4. It follows the record before it.
        5. It is the record that a later file links to, or that was noted.
        """
        self._line += 1
        read = read_line(line)
        if read is None:
            return self._break(
                None, "not_json", "is not a complete record: one line of JSON with seq, prev and hash"
            )
        if digest_of(line) != read.hash:
            return self._break(read.seq, "altered", "does not match its hash")
        expected = 1 if self.head is None else self.head.seq + 1
        if read.seq > expected:
            return self._break(read.seq, "missing", f"is in the place of record {expected}, which is missing")
        if read.seq < expected:
            return self._break(read.seq, "out_of_order", f"is in the place of record {expected}")
        if not self._follows(read.prev):
            sentence = "does not follow the record before it: one of the two was altered or replaced"
            return self._break(read.seq, "altered", sentence)
        for link, reason, _ in self._wanted.pop(read.seq, ()):
            if link.hash != read.hash:
                return self._break(read.seq, "altered", f"has been altered, and {reason}")
        self.head = Head(self.name, read.seq, read.hash)
        return None

    def _end(self) -> Break | None:
        """Return a break where the file ends too early."""
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
