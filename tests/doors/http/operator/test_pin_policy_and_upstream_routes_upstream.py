"""`/operator/upstreams`: how servers are doing, and their restart."""

from __future__ import annotations

import json

import pytest

from support.operator_console import CANARY, Console, until


@pytest.mark.covers("design.operator.upstreams")
def test_a_server_is_shown_and_restarted_and_the_act_is_recorded(console: Console) -> None:
    (before,) = console.ask("/operator/upstreams")[1]["upstreams"]
    assert (before["name"], before["transport"], before["revision"]) == ("box", "stdio", "2025-11-25")
    assert before["place"].startswith("portbook.toml:")
    assert CANARY not in json.dumps(before)
    assert console.ask("/operator/upstreams/box", {"action": "restart"}) == (200, {"restarting": "box"})

    def is_restarted() -> bool:
        (row,) = console.ask("/operator/upstreams")[1]["upstreams"]
        return row["restarts"] == before["restarts"] + 1 and row["state"] == "ready"

    until(is_restarted)
    record = console.last_record("upstreams.restart")
    assert (record["caller"], record["decision"]) == ("operator", "restart")
    assert record["arguments"] == {"server": "box", "action": "restart"}
    status, refused = console.ask("/operator/upstreams/nobody", {"action": "restart"})
    assert (status, refused["error"]["details"]["reason"]) == (404, "UPSTREAM_UNKNOWN")
