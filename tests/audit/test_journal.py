"""The journal: two views of every record and the intents before them, each a stream of its own."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.audit.journal import ChainedSink, Journal
from portbook.audit.record_views_and_fields import as_pieces
from portbook.canonical import json_bytes

STARTED = "2026-01-02T03:04:05.678Z"
ENVELOPE: Any = {"ts": STARTED, "requestId": "r-1"}
EXECUTION: Any = {"timestamp": STARTED, "request_id": "r-1", "session_id": "grüße"}
INTENT: Any = {"timestamp": STARTED, "request_id": "r-1"}


class Kept:
    """A journal in a folder, and what lies in it."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self.opened: list[Journal] = []

    def open(self, run: str = "0a1b2c3d", *, keep: int = 50, to_stderr: bool = False) -> Journal:
        journal = Journal(self.log_dir, started=STARTED, run=run, keep=keep, to_stderr=to_stderr)
        self.opened.append(journal)
        return journal

    def streams(self) -> list[str]:
        return sorted(path.name for path in (self.log_dir / "mcp_server").iterdir())

    def lines(self, stream: str) -> list[Any]:
        latest = self.log_dir / "mcp_server" / stream / f"{stream}.latest.jsonl"
        return [json.loads(line) for line in latest.read_bytes().splitlines()]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "runs")
    yield made
    for journal in made.opened:
        journal.close()


def without_chain(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("seq", "prev", "hash")}


@pytest.mark.covers("002.log.two-views")
def test_a_record_is_kept_in_both_views_before_write_returns(kept: Kept) -> None:
    journal = kept.open()
    for count in (1, 2):
        journal.write(json_bytes({**ENVELOPE, "count": count}), json_bytes({**EXECUTION, "count": count}))
        assert kept.lines("envelope_validation")[-1] == {**ENVELOPE, "count": count}
        assert without_chain(kept.lines("execution")[-1]) == {**EXECUTION, "count": count}
    assert len(kept.lines("execution")) == len(kept.lines("envelope_validation")) == 2


def test_the_execution_view_is_numbered_and_chained_and_the_envelope_view_is_not(kept: Kept) -> None:
    journal = kept.open()
    for _ in range(3):
        journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    first, second, third = kept.lines("execution")
    assert [record["seq"] for record in (first, second, third)] == [1, 2, 3]
    assert [second["prev"], third["prev"]] == [first["hash"], second["hash"]]
    assert kept.lines("envelope_validation") == [ENVELOPE] * 3


def test_the_intents_have_a_file_from_the_first_of_them_on(kept: Kept) -> None:
    journal = kept.open()
    journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    assert kept.streams() == ["envelope_validation", "execution"]
    for count in (1, 2):
        journal.intend(json_bytes({**INTENT, "count": count}))
        assert without_chain(kept.lines("intent")[-1]) == {**INTENT, "count": count}
    assert kept.streams() == ["envelope_validation", "execution", "intent"]
    first, second = kept.lines("intent")
    assert second["prev"] == first["hash"]


def test_the_files_of_a_run_have_one_name_and_only_the_owner_can_read_them(kept: Kept) -> None:
    journal = kept.open()
    journal.intend(json_bytes(INTENT))
    for stream in kept.streams():
        path = kept.log_dir / "mcp_server" / stream / "2026-01-02T03-04-05.678Z.0a1b2c3d.jsonl"
        assert path.stat().st_mode & 0o777 == 0o600


def test_every_stream_keeps_as_many_runs_as_it_was_told(kept: Kept) -> None:
    for run in "abc":
        journal = kept.open(run, keep=2)
        journal.intend(json_bytes(INTENT))
        kept.opened.pop().close()
    for stream in kept.streams():
        files = [path for path in (kept.log_dir / "mcp_server" / stream).iterdir() if not path.is_symlink()]
        assert sorted(path.suffixes[-2] for path in files) == [".b", ".c"]


@pytest.mark.parametrize("to_stderr", [False, True])
def test_execution_records_go_to_standard_error_where_that_was_asked_for(
    kept: Kept, capsys: pytest.CaptureFixture[str], to_stderr: bool
) -> None:
    journal = kept.open(to_stderr=to_stderr)
    journal.intend(json_bytes(INTENT))
    journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    said = capsys.readouterr()
    assert said.out == ""
    assert [json.loads(line) for line in said.err.splitlines()] == ([EXECUTION] if to_stderr else [])


def test_a_record_is_kept_even_if_nobody_reads_standard_error_any_more(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as broken:
        monkeypatch.setattr("sys.stderr", broken)
        kept.open(to_stderr=True).write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
        with pytest.raises(BrokenPipeError):
            broken.flush()
        with contextlib.suppress(BrokenPipeError):
            broken.close()
    assert [without_chain(record) for record in kept.lines("execution")] == [EXECUTION]


BEYOND_64_BITS: Any = {**EXECUTION, "arguments": {"n": 2**64}}


def test_a_number_that_is_too_long_for_the_fast_writer_reaches_every_copy(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.open(to_stderr=True).write(json_bytes(ENVELOPE), json_bytes(BEYOND_64_BITS))
    assert [without_chain(record) for record in kept.lines("execution")] == [BEYOND_64_BITS]
    assert kept.lines("envelope_validation") == [ENVELOPE]
    assert json.loads(capsys.readouterr().err) == BEYOND_64_BITS


@pytest.mark.parametrize("is_there", [True, False])
def test_a_record_is_kept_even_if_standard_error_was_closed(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", closed if is_there else None)
    kept.open(to_stderr=True).write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    assert [without_chain(record) for record in kept.lines("execution")] == [EXECUTION]


def test_files_that_were_removed_are_noticed_within_a_second_and_made_anew(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("portbook.audit.journal.time.monotonic", lambda: now)
    journal = kept.open()
    journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    shutil.rmtree(kept.log_dir)
    journal.look()  # it has just been looked at
    now = 1.5
    with pytest.raises(OSError, match="removed"):
        journal.look()
    journal.mend()
    journal.look()
    journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    assert len(kept.lines("execution")) == len(kept.lines("envelope_validation")) == 1


def test_a_file_of_intents_that_was_removed_is_noticed(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("portbook.audit.journal.time.monotonic", lambda: now)
    journal = kept.open()
    journal.intend(json_bytes(INTENT))
    shutil.rmtree(kept.log_dir / "mcp_server" / "intent")
    now = 1.5
    with pytest.raises(OSError, match="removed"):
        journal.look()
    journal.mend()
    journal.intend(json_bytes(INTENT))
    assert len(kept.lines("intent")) == 1


def test_a_file_that_is_made_anew_begins_its_chain_anew_even_if_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, sink = FullDisk(monkeypatch), ChainedSink(tmp_path, "execution", started=STARTED, run="r", keep=5)
    for _ in range(3):
        sink.write(json_bytes(EXECUTION))
    sink.path.unlink()
    disk.is_full = True
    with pytest.raises(OSError, match="space"):
        sink.mend()
    disk.is_full = False
    sink.mend()
    sink.write(json_bytes(EXECUTION))
    sink.close()
    assert json.loads(sink.path.read_bytes())["seq"] == 1


def test_a_link_that_cannot_be_made_leaves_nothing_for_the_next_attempt_to_stumble_over(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = kept.open()
    shutil.rmtree(kept.log_dir)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no inodes")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "symlink_to", fail)
        with pytest.raises(OSError, match="inodes"):
            journal.mend()
    journal.mend()
    journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    assert len(kept.lines("execution")) == 1


class FullDisk:
    """Stands for `os.write` on a disk without room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        real = os.write

        def write(file: int, data: bytes) -> int:
            if self.is_full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(file, data)

        monkeypatch.setattr(os, "write", write)


def test_what_cannot_be_kept_is_an_os_error_and_leaves_no_half_record_and_no_gap(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    journal = kept.open()
    journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    journal.intend(json_bytes(INTENT))
    disk.is_full = True
    for attempt in (
        lambda: journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION)),
        lambda: journal.intend(json_bytes(INTENT)),
        journal.mend,
    ):
        with pytest.raises(OSError, match="No space left"):
            attempt()
    disk.is_full = False
    journal.mend()
    journal.write(json_bytes(ENVELOPE), json_bytes(EXECUTION))
    journal.intend(json_bytes(INTENT))
    assert kept.lines("envelope_validation") == [ENVELOPE] * 2
    for stream in ("execution", "intent"):
        first, second = kept.lines(stream)
        assert (second["seq"], second["prev"]) == (2, first["hash"])


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(OSError, match="runs"):
        Kept(tmp_path / "runs").open()


def test_the_intents_of_a_folder_that_has_gone_are_an_os_error(kept: Kept) -> None:
    journal = kept.open()
    (kept.log_dir / "mcp_server" / "intent").write_text("in the way")
    with pytest.raises(OSError, match="intent"):
        journal.intend(json_bytes(INTENT))


def test_closing_lets_go_of_every_file(kept: Kept) -> None:
    def opened() -> list[str]:
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return [target for link in links if (target := str(link.readlink())).startswith(str(kept.log_dir))]

    journal = kept.open()
    journal.intend(json_bytes(INTENT))
    assert len(opened()) == 3
    kept.opened.pop().close()
    assert opened() == []


def test_a_record_without_its_first_view_gets_no_second_one(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = kept.open()
    records = [
        as_pieces(json_bytes({**ENVELOPE, "count": count}), json_bytes({**EXECUTION, "count": count}))
        for count in range(3)
    ]
    writes = iter([False, True, False, True, True])  # all executions, then each of them; all envelopes
    write = os.write

    def sometimes(file: int, data: bytes) -> int:
        if next(writes):
            return write(file, data)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", sometimes)
        assert sorted(journal.write_all(records)) == [1]
    assert [record["count"] for record in kept.lines("execution")] == [0, 2]
    assert [record["count"] for record in kept.lines("envelope_validation")] == [0, 2]
