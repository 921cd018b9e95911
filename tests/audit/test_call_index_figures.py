"""Calls, refusals, failures and latencies over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.audit.call_index_filters_and_figures import CallIndex, call_figures
from support.written_log import WrittenLog, at


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    return WrittenLog(tmp_path)


def test_figures_count_calls_and_order_latencies_in_each_bucket(log: WrittenLog) -> None:
    for second, latency in ((1, 1.0), (2, 3.0), (3, 2.0), (31, 9.0)):
        log.add(second, latency_ms=latency)
    log.add(32, latency_ms=4.0, error_class="RATE_LIMITED", status_code=429)
    log.add(59.999, error_class="TOOL_ERROR", status_code=500)
    found: Any = call_figures(CallIndex(log.folder).rows(), at(0), "2026-01-31T09:01:00.000Z", 2)
    assert [(each["calls"], each["refused"], each["failed"]) for each in found["buckets"]] == [
        (3, 0, 0),
        (3, 1, 1),
    ]
    assert [each["p50_ms"] for each in found["buckets"]] == [2.0, 4.0]
    assert found["buckets"][1]["p99_ms"] == 9.0
    assert (found["step_s"], found["total"]["calls"]) == (30.0, 6)
    assert found["reasons"] == [{"name": "RATE_LIMITED", "calls": 1}, {"name": "TOOL_ERROR", "calls": 1}]
    empty: Any = call_figures([], at(0), at(1), 3)
    assert [each["p50_ms"] for each in empty["buckets"]] == [None, None, None]
