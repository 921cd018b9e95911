"""`portbook audit export`: the records that are asked for, for other programs."""

from __future__ import annotations

import csv
import io

import pytest

from support.audit_log import IDS, Log


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ([], [1, 2, 3, 4]),
        (["--since", "2026-01-02T03:04:03Z"], [3, 4]),
        (["--until", "2026-01-02T03:04:03.000"], [1, 2]),
        (["--since", "2026-01-02", "--until", "2026-01-02T05:04:02+02:00"], [1]),
        (["--since", "2026-01-03"], []),
        (["--tool", "orders.*"], [1, 2]),
        (["--tool", "mcp.tool:echo", "--tool", "*.refund"], [1, 2, 3, 4]),
        (["--status", "success"], [1, 2, 3]),
        (["--status", "failure"], [4]),
        (["--status", "504"], [4]),
        (["--status", "403"], []),
        (["--json", "--format", "csv"], [1, 2, 3, 4]),
    ],
)
def test_export_writes_the_records_that_are_asked_for(
    options: list[str], numbers: list[int], log: Log
) -> None:
    log.write(1, 2)
    log.new_run()
    log.write(3, tool_id="mcp.tool:echo")
    log.write(4, tool_id="mcp.tool:echo", error_class="TIMEOUT", status_code=504)
    found = log.audit("export", *options).answers
    assert [IDS.index(each["request_id"]) for each in found] == numbers


@pytest.mark.parametrize("options", [["--since", "yesterday"], ["--until", "x"], ["--status", "ok"]])
def test_what_cannot_be_asked_for_is_a_usage_error(options: list[str], log: Log) -> None:
    assert options[0] in log.audit("export", *options, code=2).err


def test_export_writes_csv(log: Log) -> None:
    log.write(1, session_id="=1+1")
    [row] = csv.DictReader(io.StringIO(log.audit("export", "--format", "csv").out.decode()))
    assert (row["seq"], row["request_id"], row["session_id"], row["approval_id"]) == (
        "1",
        IDS[1],
        "'=1+1",
        "",
    )
