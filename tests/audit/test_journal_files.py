"""Where records go: the files, the link to the latest, what is pruned, and what a full disk cannot spoil."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.audit.journal import ENVELOPE_STREAM, JsonlSink
from portbook.canonical import json_bytes

STARTED = "2026-01-02T03:04:05.678Z"
RECORD: Any = {
    "ts": STARTED,
    "agentId": None,
    "note": "grüße\n\u2028",
    "metadata": {"toolId": "mcp.tool:echo"},
}


class Sinks:
    """Opens sinks in one log folder and closes them all in the end."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self.folder = log_dir / "mcp_server" / ENVELOPE_STREAM
        self.link = self.folder / "envelope_validation.latest.jsonl"
        self.opened: list[JsonlSink] = []

    def open(self, started: str = STARTED, run: str = "0a1b2c3d", keep: int = 50) -> JsonlSink:
        sink = JsonlSink(self.log_dir, ENVELOPE_STREAM, started=started, run=run, keep=keep)
        self.opened.append(sink)
        return sink

    def runs(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if not path.is_symlink())


@pytest.fixture
def sinks(tmp_path: Path) -> Iterator[Sinks]:
    made = Sinks(tmp_path / "runs")
    yield made
    for sink in made.opened:
        sink.close()


def lines(sink: JsonlSink) -> list[bytes]:
    return sink.path.read_bytes().splitlines()


def parsed(sink: JsonlSink) -> list[Any]:
    return [json.loads(line) for line in sink.path.read_bytes().split(b"\n")[:-1]]


def test_a_run_has_one_file_named_by_its_start_and_its_run(sinks: Sinks, tmp_path: Path) -> None:
    sink = sinks.open()
    expected = "mcp_server/envelope_validation/2026-01-02T03-04-05.678Z.0a1b2c3d.jsonl"
    assert sink.path == tmp_path / "runs" / expected
    assert sink.path.read_bytes() == b""


def test_the_latest_link_is_relative_and_leads_to_the_file(sinks: Sinks) -> None:
    sink = sinks.open()
    sink.write(json_bytes(RECORD))
    assert sinks.link.readlink() == Path(sink.path.name)
    assert sinks.link.read_bytes() == sink.path.read_bytes() != b""


def test_a_second_run_moves_the_link_and_leaves_the_first_file_alone(sinks: Sinks) -> None:
    first = sinks.open(run="1")
    first.write(json_bytes(RECORD))
    second = sinks.open(run="2")
    assert sinks.link.readlink() == Path(second.path.name)
    first.write(json_bytes(RECORD))
    assert [len(lines(first)), len(lines(second))] == [2, 0]


def test_whoever_follows_the_link_always_finds_a_file(sinks: Sinks, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sinks.open(run="1")
    seen: list[Path] = []
    real = Path.replace

    def watching(self: Path, target: Path) -> Path:
        seen.append(sinks.link.resolve(strict=True))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", watching)
    second = sinks.open(run="2")
    assert [*seen, sinks.link.resolve(strict=True)] == [first.path.resolve(), second.path.resolve()]


def test_making_the_link_leaves_nothing_else_behind(sinks: Sinks) -> None:
    for run in "123":
        sinks.open(run=run)
    assert len(list(sinks.folder.iterdir())) == 4


def test_a_link_that_leads_nowhere_is_replaced(sinks: Sinks) -> None:
    sinks.folder.mkdir(parents=True)
    sinks.link.symlink_to("gone.jsonl")
    sink = sinks.open()
    assert sinks.link.readlink() == Path(sink.path.name)


def test_only_the_owner_can_read_the_records(sinks: Sinks) -> None:
    before = os.umask(0)
    try:
        sink = sinks.open()
    finally:
        os.umask(before)
    assert stat.S_IMODE(sink.path.stat().st_mode) == 0o600


def test_a_file_that_is_already_there_is_not_written_to(sinks: Sinks) -> None:
    sinks.open().write(json_bytes(RECORD))
    with pytest.raises(FileExistsError):
        sinks.open()
    assert len(lines(sinks.opened[0])) == 1


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(OSError, match="runs"):
        Sinks(tmp_path / "runs").open()


def test_a_record_is_in_the_file_before_write_returns(sinks: Sinks) -> None:
    sink = sinks.open()
    for count in range(1, 4):
        sink.write(json_bytes({**RECORD, "count": count}))
        assert parsed(sink) == [{**RECORD, "count": number} for number in range(1, count + 1)]


def test_a_record_is_one_line_whatever_stands_in_it(sinks: Sinks) -> None:
    sink = sinks.open()
    sink.write(json_bytes({"a": "\n\r\x0b\x0c\x1c\x85\u2028\u2029", "b\n": None}))
    assert sink.path.read_bytes().count(b"\n") == 1
    assert parsed(sink) == [{"a": "\n\r\x0b\x0c\x1c\x85\u2028\u2029", "b\n": None}]


@pytest.mark.parametrize(
    ("runs", "keep", "left"),
    [
        pytest.param("abc", 1, "z", id="only its own"),
        pytest.param("abc", 2, "cz", id="its own and one"),
        pytest.param("abc", 3, "bcz", id="all but the oldest"),
        pytest.param("abc", 4, "abcz", id="exactly all"),
        pytest.param("abc", 50, "abcz", id="all"),
        pytest.param("", 1, "z", id="nothing to prune"),
    ],
)
def test_opening_prunes_the_oldest_runs_and_keeps_so_many(
    runs: str, keep: int, left: str, sinks: Sinks
) -> None:
    sinks.folder.mkdir(parents=True)
    for run in runs:
        (sinks.folder / f"2025-01-01T00-00-0{ord(run) - 97}.000Z.{run}.jsonl").write_text("{}\n")
    (sinks.folder / "notes.txt").write_text("somebody else's")
    sinks.open(run="z", keep=keep)
    assert [name.split(".")[-2] for name in sinks.runs() if name.endswith(".jsonl")] == list(left)
    assert "notes.txt" in sinks.runs()
    assert sinks.link.resolve(strict=True) == sinks.opened[0].path.resolve()


def test_a_file_that_is_still_written_to_is_never_pruned(sinks: Sinks) -> None:
    running = sinks.open(started="2025-01-01T00:00:00.000Z", run="running")
    ended = JsonlSink(
        sinks.log_dir, ENVELOPE_STREAM, started="2025-01-02T00:00:00.000Z", run="ended", keep=50
    )
    ended.close()
    latest = sinks.open(keep=1)
    assert sinks.runs() == [running.path.name, latest.path.name]
    running.write(json_bytes(RECORD))
    assert parsed(running) == [RECORD]


def test_streams_do_not_prune_each_other(sinks: Sinks) -> None:
    other = JsonlSink(sinks.log_dir, "other", started="2025-01-01T00:00:00.000Z", run="1", keep=1)
    other.close()
    sinks.open(keep=1)
    assert other.path.exists()


class Disk:
    """Stands for `os.write`: takes so many bytes of each write; where it takes none, it is full."""

    def __init__(self, *takes: int) -> None:
        self.takes = list(takes)
        self.write = os.write

    def __call__(self, file: int, data: bytes) -> int:
        take = self.takes.pop(0) if self.takes else len(data)
        if take == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.write(file, data[:take])


@pytest.mark.parametrize(
    ("takes", "failures", "left_behind"),
    [
        pytest.param([0], 1, [], id="full before the record: no empty line"),
        pytest.param([0, 0, 0], 3, [], id="full for some time"),
        pytest.param([5, 0], 1, [], id="full in the middle of a record"),
        pytest.param([5, 0, 0], 2, [], id="and still full at the next"),
        pytest.param([5, 0, 1, 0], 2, [], id="room for one byte only"),
        pytest.param([5, 0, 6, 0], 2, [], id="full in the middle of two"),
    ],
)
def test_a_full_disk_fails_the_record_and_spoils_no_other(
    takes: list[int], failures: int, left_behind: list[bytes], sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sinks.open()
    sink.write(json_bytes(RECORD))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(*takes))
        for _ in range(failures):
            with pytest.raises(OSError, match="No space left"):
                sink.write(json_bytes(RECORD))
        sink.write(json_bytes(RECORD))
    sink.write(json_bytes(RECORD))
    found = sink.path.read_bytes().split(b"\n")
    assert found.pop() == b""
    assert [line for line in found if not line.endswith(b"}")] == left_behind
    assert [json.loads(line) for line in found if line.endswith(b"}")] == [RECORD] * 3


def test_after_a_failure_the_sink_says_whether_there_is_room_again(
    sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sinks.open()
    sink.write(json_bytes(RECORD))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(5, 0, 100, 0))
        with pytest.raises(OSError, match="No space left"):
            sink.write(json_bytes(RECORD))
        with pytest.raises(OSError, match="No space left"):
            sink.mend()
    sink.mend()
    sink.write(json_bytes(RECORD))
    assert [json.loads(line) for line in sink.path.read_bytes().splitlines()] == [RECORD] * 2


def test_a_write_that_takes_only_a_part_is_continued(sinks: Sinks, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = sinks.open()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(1, 2, 3))
        sink.write(json_bytes(RECORD))
    assert parsed(sink) == [RECORD]


def test_a_record_is_one_write_so_that_no_other_process_can_cut_into_it(
    sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sinks.open()
    writes: list[bytes] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda _file, data: writes.append(data) or len(data))
        sink.write(json_bytes(RECORD))
    assert [json.loads(data) for data in writes] == [RECORD]


def test_records_are_appended_even_if_the_file_was_cut(sinks: Sinks) -> None:
    sink = sinks.open()
    sink.write(json_bytes(RECORD))
    os.truncate(sink.path, 0)
    sink.write(json_bytes(RECORD))
    assert parsed(sink) == [RECORD]


@pytest.mark.parametrize(
    ("takes", "failed"),
    [
        pytest.param([], [], id="room for all"),
        pytest.param([0], [], id="full, then room again"),
        pytest.param([40, 0], [], id="full in the middle, then room again"),
        pytest.param([0, 999, 0, 999], [1], id="no room for the second"),
        pytest.param([0, 0, 0, 0], [0, 1, 2], id="full"),
    ],
)
def test_records_that_are_written_together_fail_one_by_one(
    takes: list[int], failed: list[int], sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sinks.open()
    records = [{**RECORD, "count": count} for count in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", Disk(*takes))
        found = sink.write_all([sink.pieces_of(json_bytes(record)) for record in records])
    assert sorted(found) == failed
    assert parsed(sink) == [record for place, record in enumerate(records) if place not in failed]
