"""The chain through the execution log: what a sink writes is whole, and nothing can be changed unseen."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portbook.audit.chain import GENESIS, Head, Links, head_of
from portbook.audit.chain_verification import Break, ChainVerdict, verify
from portbook.audit.journal import ChainedSink, chained
from portbook.audit.log_reader_and_follower import files_in, lines_of
from portbook.canonical import json_bytes
from support.counts import count

RECORD: Any = {"timestamp": "2026-01-02T03:04:05.678Z", "session_id": "grüße\n\u2028", "tool_id": None}


class Log:
    """One stream in a folder, written by several runs."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self.folder = log_dir / "mcp_server" / "execution"
        self._opened: list[ChainedSink] = []

    def open(self, run: int, *, keep: int = 50) -> ChainedSink:
        started = f"2026-01-{run:02d}T00:00:00.000Z"
        sink = ChainedSink(self.log_dir, "execution", started=started, run="r", keep=keep)
        self._opened.append(sink)
        return sink

    def run(self, run: int, records: int, *, keep: int = 50) -> Path:
        """Write so many records in one run, to its end."""
        sink = self.open(run, keep=keep)
        for number in range(records):
            sink.write(json_bytes({**RECORD, "number": number}))
        self.close(sink)
        return sink.path

    def close(self, sink: ChainedSink) -> None:
        self._opened.remove(sink)
        sink.close()

    def close_all(self) -> None:
        for sink in list(self._opened):
            self.close(sink)

    def verify(self, keep: int = 50, *noted: str) -> ChainVerdict:
        files: dict[str, Callable[[], Iterator[bytes]]] = {
            path.name: lambda path=path: lines_of(path) for path in files_in(self.folder)
        }
        heads = [Head.read(text) for text in noted]
        return verify(files, keep, [head for head in heads if head is not None])

    def broken(self, keep: int = 50, *noted: str) -> Break:
        broken = self.verify(keep, *noted).broken
        assert broken is not None
        return broken


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path)
    yield made
    made.close_all()


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def parsed(path: Path) -> list[Any]:
    return [json.loads(line) for line in lines(path)]


def cut(path: Path, records: int) -> None:
    """Leave so many records of a file."""
    path.write_bytes(b"".join(lines(path)[:records]))


def followed_by(path: Path) -> list[str]:
    """Return what the first record of a file follows: the day of each file, and the number."""
    found = Links.read(parsed(path)[0]["prev"])
    assert found is not None
    return [f"{head.file[8:10]}#{head.seq}" for head in found.heads]


# -- what is written


@pytest.mark.covers("002.logging.chained")
def test_records_are_numbered_and_each_holds_the_hash_of_the_one_before(log: Log) -> None:
    records = parsed(log.run(1, 3))
    assert [list(record) for record in records] == [["seq", "prev", *RECORD, "number", "hash"]] * 3
    assert [record["seq"] for record in records] == [1, 2, 3]
    assert [record["prev"] for record in records] == [GENESIS, records[0]["hash"], records[1]["hash"]]


def test_a_hash_is_that_of_the_line_without_it(log: Log) -> None:
    line = lines(log.run(1, 1))[0].decode()
    body, _, digest = line.rpartition(',"hash":"')
    assert hashlib.sha256(f"{body}}}".encode()).hexdigest() == digest.removesuffix('"}\n')


def test_a_file_follows_the_last_record_of_the_newest_one(log: Log) -> None:
    first = log.run(1, 2)
    log.run(2, 0)  # has no record that could be followed
    second = log.run(3, 1)
    assert parsed(second)[0]["prev"] == f"{first.name}#2:{parsed(first)[1]['hash']}"
    assert log.verify().broken is None


def test_two_runs_at_once_both_hold(log: Log) -> None:
    first, second = log.open(1), log.open(2)
    first.write(json_bytes(RECORD))
    third = log.open(3)  # follows what the first has written so far
    for number, sink in enumerate((first, second, third, first)):
        sink.write(json_bytes({**RECORD, "number": number}))
    verdict = log.verify()
    assert (verdict.broken, verdict.files, verdict.records) == (None, 3, 5)
    assert parsed(second.path)[0]["prev"] == GENESIS
    assert parsed(third.path)[0]["prev"].startswith(f"{first.path.name}#1:")


@pytest.mark.covers("002.logging.linked")
def test_a_file_follows_every_file_that_none_follows_to_its_end(log: Log) -> None:
    server = log.open(1)
    server.write(json_bytes(RECORD))
    assert followed_by(log.run(2, 1)) == ["01#1"]
    assert followed_by(log.run(3, 1)) == ["02#1"]  # what the second follows is held by it
    worker = log.open(4)
    server.write(json_bytes(RECORD))
    worker.write(json_bytes(RECORD))
    assert followed_by(worker.path) == ["03#1"]
    assert followed_by(log.run(5, 1)) == ["01#2", "04#1"]
    assert followed_by(log.run(6, 1)) == ["05#1"]
    assert log.verify().broken is None


def test_what_only_a_file_that_is_about_to_be_pruned_follows_is_followed_anew(log: Log) -> None:
    server = log.open(1)
    server.write(json_bytes(RECORD))
    assert followed_by(log.run(2, 1, keep=2)) == ["01#1"]
    log.run(3, 1, keep=2)
    assert followed_by(log.run(4, 1, keep=2)) == ["01#1", "03#1"]
    assert [path.name[8:10] for path in files_in(log.folder)] == ["01", "03", "04"]
    cut(server.path, 0)
    assert log.broken(2).problem == "missing"


def test_a_file_that_is_none_of_ours_is_not_followed(log: Log) -> None:
    path = log.run(1, 1)
    for name in ("copy of it.jsonl", "a#b.jsonl"):
        (path.parent / name).write_bytes(path.read_bytes())
    (path.parent / "0-planted.jsonl").write_bytes(
        lines(path)[0].replace(GENESIS.encode(), str(head_of(path.name, lines(path)[0])).encode())
    )
    assert followed_by(log.run(2, 1)) == [
        "01#1"
    ]  # though another claims to do so, with a hash that is not its


def test_a_number_that_is_too_long_for_the_fast_writer_is_written_all_the_same(log: Log) -> None:
    sink = log.open(1)
    sink.write(json_bytes({"agent_step": 10**30}))
    assert parsed(sink.path)[0]["agent_step"] == 10**30
    assert log.verify().broken is None


def test_a_half_written_line_of_another_process_is_not_followed(log: Log) -> None:
    first = log.run(1, 2)
    with first.open("ab") as file:
        file.write(b'{"seq":3,"prev":"')
    second = log.run(2, 1)
    assert parsed(second)[0]["prev"].startswith(f"{first.name}#2:")


@pytest.mark.parametrize("size", [10, 70_000, 200_000])
def test_the_last_record_is_found_however_long_it_is(log: Log, size: int) -> None:
    sink = log.open(1)
    sink.write(json_bytes({"a": "x"}))
    sink.write(json_bytes({"a": "x" * size}))
    assert parsed(log.run(2, 1))[0]["prev"].startswith(f"{sink.path.name}#2:")


class FullDisk:
    """Stands for `os.write`: takes so many bytes, then nothing more."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.write = os.write

    def __call__(self, file: int, data: bytes) -> int:
        if self.takes == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken, self.takes = data[: self.takes], 0
        return self.write(file, taken)


@pytest.mark.covers("002.logging.no-gaps")
@pytest.mark.parametrize("takes", [0, 1, 100])
def test_a_record_that_cannot_be_written_leaves_no_gap(
    takes: int, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = log.open(1)
    sink.write(json_bytes(RECORD))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", FullDisk(takes))
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                sink.write(json_bytes(RECORD))
    sink.mend()
    sink.write(json_bytes(RECORD))
    assert [record["seq"] for record in parsed(sink.path)] == [1, 2]
    assert log.verify().broken is None


def test_a_record_is_one_write(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = log.open(1)
    writes: list[bytes] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda _file, data: writes.append(data) or len(data))
        sink.write(json_bytes(RECORD))
    assert [json.loads(data)["seq"] for data in writes] == [1]


# -- what is found


def test_a_whole_log_says_the_last_record_of_each_file(log: Log) -> None:
    first = log.run(1, 3)
    last = log.run(2, 2)
    log.run(3, 0)
    heads = (Head(first.name, 3, parsed(first)[2]["hash"]), Head(last.name, 2, parsed(last)[1]["hash"]))
    assert log.verify() == ChainVerdict(3, 5, heads, False, (), None)
    assert log.verify().head == heads[1]


def test_an_empty_log_is_whole(log: Log) -> None:
    assert log.verify() == ChainVerdict(0, 0, (), False, (), None)
    assert log.verify().head is None


def altered(line: bytes) -> bytes:
    return line.replace(b'"number":2', b'"number":7')


def with_another_hash(line: bytes) -> bytes:
    return line[:-4] + (b"1" if line[-4:-3] == b"0" else b"0") + line[-3:]


def with_its_hash_anew(line: bytes) -> bytes:
    record = json.loads(altered(line))
    del record["hash"]
    seq, prev = record.pop("seq"), record.pop("prev")
    return chained([json_bytes(record)], seq - 1, prev)[0]


# The third of five records of the first of two files is harmed.
HARM: dict[str, tuple[Callable[[list[bytes]], list[bytes]], tuple[int, int | None, str]]] = {
    "altered": (lambda old: [*old[:2], altered(old[2]), *old[3:]], (3, 3, "altered")),
    "altered, with its hash": (
        lambda old: [*old[:2], with_its_hash_anew(old[2]), *old[3:]],
        (4, 4, "altered"),
    ),
    "its hash altered": (lambda old: [*old[:2], with_another_hash(old[2]), *old[3:]], (3, 3, "altered")),
    "taken out": (lambda old: [*old[:2], *old[3:]], (3, 4, "missing")),
    "the first taken out": (lambda old: old[1:], (1, 2, "missing")),
    "the last taken out": (lambda old: old[:-1], (5, 5, "missing")),
    "the last two taken out": (lambda old: old[:-2], (4, 5, "missing")),
    "twice": (lambda old: [*old[:3], *old[2:]], (4, 3, "out_of_order")),
    "exchanged": (lambda old: [*old[:2], old[3], old[2], old[4]], (3, 4, "missing")),
    "cut": (lambda old: [*old[:2], old[2][:50] + b"\n", *old[3:]], (3, None, "not_json")),
    "joined": (lambda old: [*old[:2], old[2][:-1] + old[3], old[4]], (3, None, "not_json")),
    "an empty line": (lambda old: [*old[:2], b"\n", *old[2:]], (3, None, "not_json")),
    "no JSON": (lambda old: [*old[:2], b'x,"hash":"' + b"0" * 64 + b'"}\n', *old[3:]], (3, None, "not_json")),
    "a number for a text": (
        lambda old: [*old[:2], b'{"seq":"3","prev":"","hash":"' + b"0" * 64 + b'"}\n'],
        (3, None, "not_json"),
    ),
    "the last without its end": (lambda old: [*old[:4], old[4][:-1]], (5, 5, "missing")),
    "emptied": (lambda old: [], (1, 5, "missing")),
}


@pytest.mark.covers("002.logging.verified")
@pytest.mark.parametrize("harm", HARM)
def test_the_first_record_that_is_not_as_it_was_written_is_named(harm: str, log: Log) -> None:
    path = log.run(1, 5)
    log.run(2, 2)
    change, (line, seq, problem) = HARM[harm]
    path.write_bytes(b"".join(change(lines(path))))
    broken = log.broken()
    assert (broken.file, broken.line, broken.seq, broken.problem) == (path.name, line, seq, problem)


def test_the_earliest_of_several_breaks_is_named(log: Log) -> None:
    first, second = log.run(1, 3), log.run(2, 3)
    for path in (second, first):
        path.write_bytes(b"".join(lines(path)[1:]))
    assert log.broken().file == first.name


def test_a_last_record_made_anew_is_found_by_the_file_that_follows_it(log: Log) -> None:
    path = log.run(1, 3)
    log.run(2, 1)
    path.write_bytes(b"".join([*lines(path)[:2], with_its_hash_anew(lines(path)[2])]))
    broken = log.broken()
    assert (broken.file, broken.line, broken.seq, broken.problem) == (path.name, 3, 3, "altered")


@pytest.mark.covers("002.logging.cut")
@pytest.mark.parametrize("left", [0, 1, 2, 7])
def test_records_cut_off_a_file_that_went_on_beside_others_are_missed(left: int, log: Log) -> None:
    server = log.open(1)
    for _ in range(2):
        server.write(json_bytes(RECORD))
    log.run(2, 1)
    for _ in range(6):
        server.write(json_bytes(RECORD))
    log.close(server)
    log.run(3, 1)
    cut(server.path, left)
    broken = log.broken()
    assert (broken.file, broken.line, broken.problem) == (server.path.name, left + 1, "missing")
    assert broken.seq == (2 if left < 2 else 8)  # the first of those that others follow


def test_a_file_beside_others_that_was_removed_is_missed(log: Log) -> None:
    server = log.open(1)
    server.write(json_bytes(RECORD))
    between, last = log.run(2, 1), log.run(3, 1)
    server.path.unlink()
    broken = log.broken()
    assert (broken.file, broken.problem) == (between.name, "predecessor_lost")
    assert last.exists()


def test_blanks_that_were_tried_on_a_full_disk_are_no_record(log: Log) -> None:
    path = log.run(1, 2)
    with path.open("ab") as file:
        file.write(b" " * 100)
    assert (log.verify().broken, log.verify().cut) == (None, ())


def test_a_record_that_a_kill_cut_in_two_is_no_break(log: Log) -> None:
    path = log.run(1, 3)
    path.write_bytes(path.read_bytes()[:-10])
    log.run(2, 1)
    verdict = log.verify()
    assert (verdict.broken, verdict.records, verdict.cut) == (None, 3, (path.name,))


def test_a_first_record_that_follows_nothing_sensible_is_named(log: Log) -> None:
    path = log.run(1, 1)
    path.write_bytes(chained([json_bytes(RECORD)], 0, "somewhere")[0])
    assert log.broken().problem == "altered"


# -- files that are gone


@pytest.mark.covers("002.logging.pruned")
@pytest.mark.parametrize("keep", [1, 2, 3])
def test_files_that_were_pruned_by_age_are_no_break(keep: int, log: Log) -> None:
    for run in range(1, 6):
        log.run(run, 2, keep=keep)
    verdict = log.verify(keep)
    assert (verdict.broken, verdict.files, verdict.is_pruned) == (None, keep, True)


def test_a_file_that_outlives_younger_ones_is_no_break(log: Log) -> None:
    running = log.open(1)
    running.write(json_bytes(RECORD))
    for run in range(2, 7):
        log.run(run, 1, keep=2)
    assert [path.name[:10] for path in files_in(log.folder)] == ["2026-01-01", "2026-01-05", "2026-01-06"]
    verdict = log.verify(keep=2)
    assert (verdict.broken, verdict.is_pruned) == (None, True)


def test_files_that_were_pruned_when_fewer_were_kept_are_no_break(log: Log) -> None:
    for run in range(1, 6):
        log.run(run, 1, keep=2)
    assert log.verify(keep=50).broken is None  # what is left says what had had its time
    log.run(6, 1, keep=50)
    verdict = log.verify(keep=50)
    assert (verdict.broken, verdict.files, verdict.is_pruned) == (None, 3, True)
    files_in(log.folder)[0].unlink()  # and no more than that
    assert log.broken(keep=50).problem == "predecessor_lost"


def test_files_that_were_pruned_by_a_run_without_records_are_no_break(log: Log) -> None:
    for run in range(1, 4):
        log.run(run, 1, keep=3)
    log.run(4, 0, keep=3)
    verdict = log.verify(keep=3)
    assert (verdict.broken, verdict.files, verdict.is_pruned) == (None, 3, True)


@pytest.mark.covers("002.logging.removed")
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_file_that_was_removed_before_its_time_is_named(lost: int, log: Log) -> None:
    paths = [log.run(run, 2) for run in (1, 2, 3, 4)]
    paths[lost - 1].unlink()
    broken = log.broken()
    assert (broken.file, broken.line, broken.problem) == (paths[lost].name, 1, "predecessor_lost")
    assert paths[lost - 1].name in broken.sentence


# -- records that were noted


def test_a_noted_record_must_still_be_there(log: Log) -> None:
    path = log.run(1, 3)
    noted = str(log.verify().head)
    assert log.verify(50, noted).broken is None
    path.write_bytes(b"".join(lines(path)[:2]))
    assert log.verify().broken is None  # nothing else shows that the end was cut off
    broken = log.broken(50, noted)
    assert (broken.file, broken.line, broken.seq, broken.problem) == (path.name, 3, 3, "missing")


def test_a_chain_made_anew_is_found_by_a_noted_record(log: Log) -> None:
    path = log.run(1, 2)
    noted = str(log.verify().head)
    path.unlink()
    sink = log.open(1)
    for _ in range(2):
        sink.write(json_bytes({"forged": True}))
    assert log.verify().broken is None
    assert log.broken(50, noted).problem == "altered"


def test_the_file_of_a_noted_record_must_still_be_there(log: Log) -> None:
    log.run(1, 1)
    path = log.run(2, 1)
    noted = str(log.verify().head)
    path.unlink()
    broken = log.broken(50, noted)
    assert (broken.file, broken.seq, broken.problem) == (path.name, 1, "predecessor_lost")


# -- for any record


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)
_records = st.dictionaries(st.text(min_size=5), _json, min_size=1, max_size=4)


@pytest.mark.soak("altered bytes")
@settings(max_examples=count("altered bytes"))
@given(st.lists(_records, min_size=1, max_size=5), st.data())
def test_no_byte_of_a_log_can_be_changed_unseen(records: list[Any], data: st.DataObject) -> None:
    written: list[bytes] = []
    prev = GENESIS
    for seq, record in enumerate(records):
        line, _, prev = chained([json_bytes(record)], seq, prev)
        written.append(line)
    assert chained(map(json_bytes, records), 0, GENESIS) == (b"".join(written), len(records), prev)
    whole = b"".join(written)
    head = head_of("f", written[-1])
    assert head is not None
    assert verify({"f": lambda: written}, 1) == ChainVerdict(1, len(records), (head,), False, (), None)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    changed = (whole[:at] + bytes([byte]) + whole[at + 1 :]).splitlines(keepends=True)
    # The hash of the last record is held by nobody else, so it is noted.
    assert verify({"f": lambda: changed}, 1, [head]).broken is not None
