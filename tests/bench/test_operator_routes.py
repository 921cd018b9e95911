"""What an operator waits for can be measured: every route answers, over records that are whole."""

from __future__ import annotations

from pathlib import Path

from bench.operator_routes import measured_all, write_calls, write_settings
from portbook.audit.checkpoint_and_log_verification import verified_streams


def test_every_route_is_measured_over_a_log_that_is_whole(tmp_path: Path) -> None:
    write_settings(tmp_path, 20)
    request = write_calls(tmp_path, 100)
    execution = verified_streams(tmp_path / "runs", 10)["execution"]
    assert (execution.broken, execution.records) == (None, 100)
    found = {each.route: each for each in measured_all(tmp_path, request)}
    assert len(found) == 12
    assert all(each.next_ms > 0 and each.size > 0 for each in found.values())
