"""Records read back: forwards, backwards, as they are added, and those that never came."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.audit import log_reader_and_follower as records
from portbook.audit.journal import ChainedSink, JsonlSink
from portbook.audit.log_reader_and_follower import (
    Follower,
    Located,
    files_in,
    first_and_last_line,
    is_written_to,
    lines_from_end,
    lines_of,
    records_in,
    stream_folder,
    without_outcome,
)


def write(path: Path, *found: Any, end: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in found) + end, "utf-8")
    return path


def test_a_stream_has_its_place_and_its_files_are_in_order(tmp_path: Path) -> None:
    folder = stream_folder(tmp_path, "execution")
    assert folder == tmp_path / "mcp_server" / "execution"
    assert files_in(folder) == []
    for name in ("b.jsonl", "a.jsonl", "notes.txt"):
        write(folder / name)
    (folder / "execution.latest.jsonl").symlink_to("b.jsonl")
    assert [path.name for path in files_in(folder)] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize(
    ("text", "forwards", "backwards"),
    [
        pytest.param(b"", [], [], id="empty"),
        pytest.param(b"a\nb\n", [b"a\n", b"b\n"], [b"b\n", b"a\n"], id="whole"),
        pytest.param(b"a\nb", [b"a\n", b"b"], [b"a\n"], id="half a line"),
        pytest.param(b"a\n   ", [b"a\n"], [b"a\n"], id="blanks at the end"),
        pytest.param(b"a\n\nb\n", [b"a\n", b"\n", b"b\n"], [b"b\n", b"\n", b"a\n"], id="an empty line"),
        pytest.param(b"\n", [b"\n"], [b"\n"], id="nothing but an end"),
    ],
)
def test_lines_are_read_from_either_end(
    text: bytes, forwards: list[bytes], backwards: list[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(text)
    assert list(lines_of(path)) == forwards
    assert list(lines_from_end(path)) == backwards


@given(st.binary(max_size=60), st.integers(1, 9))
def test_backwards_is_forwards_reversed_whatever_the_blocks(
    tmp_path_factory: Any, text: bytes, block: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "f"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(records, "_BLOCK", block)
        found = list(lines_from_end(path))
    assert found[::-1] == text.splitlines(keepends=True)[: len(found)] or b"\r" in text
    assert b"".join(found[::-1]) == text[: text.rfind(b"\n") + 1]


def test_files_that_cannot_be_listed_are_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    assert files_in(tmp_path / "missing") == []
    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(OSError, match="too many open files"):
        files_in(tmp_path)
    with pytest.raises(OSError, match="too many open files"):
        ChainedSink(tmp_path, "execution", started="2026-01-01T00:00:00.000Z", run="a", keep=9)


@given(st.lists(st.sampled_from([b"", b"a", b"bcd", b"long" * 5, b" "]), max_size=6), st.integers(1, 9))
def test_the_first_and_the_last_line_are_those_that_reading_finds(lines: list[bytes], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(records, "_BLOCK", block)
        path = Path(folder) / "x.jsonl"
        path.write_bytes(b"\n".join(lines))
        expected = next(lines_of(path), b""), next(lines_from_end(path), b"")
        assert first_and_last_line(path) == expected


def test_lines_that_are_no_records_are_told_of(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", {"n": 1}, [2], end="{\n")
    write(tmp_path / "b.jsonl", {"n": 3}, end='{"n":4')
    bad: list[tuple[str, int]] = []
    found = list(records_in(tmp_path, lambda file, line: bad.append((file, line))))
    assert found == [Located("a.jsonl", 1, {"n": 1}), Located("b.jsonl", 1, {"n": 3})]
    assert bad == [("a.jsonl", 2), ("a.jsonl", 3)]


def test_a_follower_reads_what_is_added_to_any_file_once_it_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"n": 1})
    follower = Follower(tmp_path)
    assert follower.read() == []
    with path.open("a") as file:
        file.write('{"n":2}\n{"n":')
    write(tmp_path / "b.jsonl", {"n": 4})
    assert follower.read() == [{"n": 2}, {"n": 4}]
    with path.open("a") as file:
        file.write("3}\nno record\n")
    assert follower.read() == [{"n": 3}]
    path.unlink()
    assert follower.read() == []


def test_an_intent_without_a_record_in_its_run_is_found(tmp_path: Path) -> None:
    intents, executions = tmp_path / "intent", tmp_path / "execution"
    write(intents / "1.jsonl", {"request_id": "a"}, {"request_id": "b"}, {"request_id": "b"}, end="x\n")
    write(executions / "1.jsonl", {"request_id": "b"}, {"request_id": "c"})
    write(intents / "2.jsonl", {"request_id": "c"})
    write(executions / "3.jsonl", {"request_id": "a"})
    assert list(without_outcome(intents, executions)) == [
        Located("1.jsonl", 1, {"request_id": "a"}),
        Located("1.jsonl", 3, {"request_id": "b"}),
        Located("2.jsonl", 1, {"request_id": "c"}),
    ]


def test_a_file_is_written_to_until_its_sink_is_closed(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path, "intent", started="2026-01-01T00:00:00.000Z", run="r", keep=5)
    assert is_written_to(sink.path)
    sink.close()
    assert not is_written_to(sink.path)
