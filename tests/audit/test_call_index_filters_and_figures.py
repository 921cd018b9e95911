"""The index of recorded calls: complete, in order, and kept up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.audit.call_index_filters_and_figures import CallIndex, call_filter, position_of
from support.written_log import WrittenLog, at, ids


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    return WrittenLog(tmp_path)


def test_both_views_of_a_call_are_one_row(log: WrittenLog) -> None:
    log.add(1, caller="ada", decision="deny", rule="r (f:3)", error_class="POLICY_DENIED", status_code=403)
    (row,) = CallIndex(log.folder).rows()
    assert (row.door, row.caller, row.reason, row.code) == ("stdio /rpc", "ada", "POLICY_DENIED", 403)
    assert (row.file, row.line, row.seq) == ("a.jsonl", 1, 1)
    assert row.as_data()["request_id"] == "r1"


def test_what_was_added_is_found_and_files_of_several_processes_are_in_order(log: WrittenLog) -> None:
    index = CallIndex(log.folder)
    assert index.rows() == []
    log.add(2)
    assert ids(index.rows()) == ["r1"]
    log.add(1, file="b.jsonl")
    log.add(3)
    assert ids(index.rows()) == ["r2", "r1", "r3"]


def test_a_line_that_is_being_written_and_one_that_is_no_record_are_left(log: WrittenLog) -> None:
    log.add(1)
    path = log.folder / "mcp_server" / "execution" / "a.jsonl"
    index = CallIndex(log.folder)
    with path.open("a") as file:
        file.write('not json\n{"request_id": "late", "timestamp": ')
    assert ids(index.rows()) == ["r1"]
    with path.open("a") as file:
        file.write(f'"{at(5)}"}}\n')
    assert [(row.request_id, row.line) for row in index.rows()] == [("r1", 1), ("late", 3)]


def test_rows_of_pruned_files_go_and_the_number_of_rows_is_bounded(log: WrittenLog) -> None:
    index = CallIndex(log.folder, most=3)
    log.add(1, file="old.jsonl")
    log.add(2)
    assert ids(index.rows()) == ["r1", "r2"]
    (log.folder / "mcp_server" / "execution" / "old.jsonl").unlink()
    assert ids(index.rows()) == ["r2"]
    for second in (3, 4, 5):
        log.add(second)
    assert ids(index.rows()) == ["r3", "r4", "r5"]


def test_the_newest_are_found_page_by_page(log: WrittenLog) -> None:
    for second in range(6):
        log.add(second, caller="ada" if second % 2 else "bob")
    index = CallIndex(log.folder)
    wanted = call_filter({"caller": "ada"})
    first = index.newest(wanted, 2, None)
    assert ids(first) == ["r6", "r4"]
    assert ids(index.newest(wanted, 2, first[-1].position)) == ["r2"]


def test_pages_lose_no_call_of_the_same_millisecond(log: WrittenLog) -> None:
    for file in ("a.jsonl", "b.jsonl", "a.jsonl", "b.jsonl", "a.jsonl"):
        log.add(1, file=file)
    index = CallIndex(log.folder)
    wanted = call_filter({})
    found = index.newest(wanted, 2, None)
    while page := index.newest(wanted, 2, position_of("before", found[-1].cursor)):
        found += page
    assert ids(found) == ids(index.newest(wanted, 10, None))
    assert len(found) == 5
    assert not index.newest(wanted, 10, position_of("before", at(1)))
