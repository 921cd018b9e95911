"""Which recorded calls a filter finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.audit.call_index_filters_and_figures import BadFilter, CallIndex, call_filter
from support.written_log import WrittenLog, at, ids


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    return WrittenLog(tmp_path)


FILTERED: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["r3", "r2", "r1"]),
    ({"tool": "echo"}, ["r1"]),
    ({"tool": "mcp.tool:files.*"}, ["r3", "r2"]),
    ({"caller": "ada"}, ["r1"]),
    ({"door": "http"}, ["r2"]),
    ({"decision": "deny"}, ["r2"]),
    ({"rule": "no writing"}, ["r2"]),
    ({"rule": "no writing (portbook.toml:7)"}, ["r2"]),
    ({"rule": "no"}, []),
    ({"reason": "POLICY_DENIED"}, ["r2"]),
    ({"approval": "a1"}, ["r3"]),
    ({"status": "success"}, ["r1"]),
    ({"status": "refused"}, ["r2"]),
    ({"status": "failed"}, ["r3"]),
    ({"status": "failure"}, ["r3", "r2"]),
    ({"status": "403"}, ["r2"]),
    ({"since": at(2)}, ["r3", "r2"]),
    ({"until": at(2)}, ["r1"]),
    ({"since": "2026-01-31T10:00:01.500+01:00", "tool": "*"}, ["r3", "r2"]),
]


@pytest.mark.parametrize(("asked", "expected"), FILTERED)
def test_calls_are_filtered(log: WrittenLog, asked: dict[str, str], expected: list[str]) -> None:
    log.add(1, caller="ada", decision="allow")
    rule = "no writing (portbook.toml:7)"
    denied = {"error_class": "POLICY_DENIED", "status_code": 403, "rule": rule}
    log.add(2, tool_id="mcp.tool:files.read", door="http", decision="deny", **denied)
    failed = {"error_class": "TOOL_ERROR", "status_code": 500}
    log.add(3, tool_id="mcp.tool:files.write", decision="allow", approval_id="a1", **failed)
    assert ids(CallIndex(log.folder).newest(call_filter(asked), 10, None)) == expected


@pytest.mark.parametrize(
    ("name", "value"), [("since", "soon"), ("status", "good"), ("tool", "["), ("colour", "x")]
)
def test_a_filter_that_cannot_be_used_is_told(name: str, value: str) -> None:
    with pytest.raises(BadFilter) as raised:
        call_filter({name: value})
    assert raised.value.name == name
