"""What a server reports between two rounds of a call: kept in order, and of too much the newest."""

from __future__ import annotations

import pytest

from portbook.model import JSONObject
from portbook.upstreams.running_call import ReportsBetweenRounds


@pytest.mark.parametrize(
    ("reports", "size", "kept"),
    [(3, 10, [0, 1, 2]), (300, 1, list(range(44, 300))), (10, 20_000, [7, 8, 9]), (1, 70_000, [])],
)
def test_the_newest_reports_are_kept_in_order_and_told_once(reports: int, size: int, kept: list[int]) -> None:
    told: list[JSONObject] = []
    between = ReportsBetweenRounds()
    for number in range(reports):
        between.put(told.append, {"progress": number, "message": "x" * size})
    between.tell()
    between.tell()
    assert [each["progress"] for each in told] == kept
