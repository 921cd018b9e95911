"""`/operator/pins`: both sides of what is withheld, and its approval."""

from __future__ import annotations

import pytest

from support.operator_console import Console, until
from support.pinned_folder import BREAKING, LIST, SEND, WIDENED
from support.portbook_process import run


@pytest.mark.covers("design.operator.pins")
def test_what_is_withheld_is_shown_side_by_side_and_approved_from_here(console: Console) -> None:
    folder = console.folder
    folder.offer(WIDENED, LIST)
    until(lambda: len(console.withheld()) == 1)
    assert console.ask("/operator/pins")[1]["servers"][0]["pinned"] == 2
    (found,) = console.withheld()
    (change,) = found["changes"]
    assert (found["standing"], found["reaction"], change["grade"]) == ("changed", "ask", "widened")
    (part,) = found["parts"]
    assert (part["approved"], part["observed"]) == (SEND["inputSchema"], WIDENED["inputSchema"])
    assert part["places"] == [{"pointer": "/properties/cc", "approved": None, "observed": {"type": "string"}}]
    assert console.call("box.send", to="x")["error"]["details"]["reason"] == "TOOL_WITHHELD"
    lock, named = folder.lock.read_bytes(), [{"kind": "tool", "name": "send"}]
    assert console.decide("keep", found)[1] == {"approved": [], "kept": named}
    assert folder.lock.read_bytes() == lock
    assert console.decide("approve", {**found, "digest": "x"})[1]["error"]["details"]["reason"] == (
        "REVIEW_OUTDATED"
    )
    assert console.decide("approve", found) == (200, {"approved": named, "kept": []})
    written = folder.lock.read_bytes()
    record = console.last_record("pins.decide")
    assert (record["caller"], record["decision"]) == ("operator", "approve")
    assert record["arguments"]["definitions"][0]["name"] == "send"
    until(lambda: console.call("box.send", to="x")["status"] == "success")
    folder.lock.write_bytes(lock)  # the same by the command line gives the same file, byte for byte
    assert run("pin", cwd=folder.path).code == 0
    assert folder.lock.read_bytes() == written
    folder.offer(SEND, LIST)
    assert run("pin", cwd=folder.path).code == 0


def test_what_is_blocked_is_approved_only_by_force(console: Console) -> None:
    folder = console.folder
    folder.offer(BREAKING, LIST)
    until(lambda: [each["reaction"] for each in console.withheld()] == ["block"])
    (found,) = console.withheld()
    status, refused = console.decide("approve", found)
    assert (status, refused["error"]["details"]["reason"]) == (409, "REVIEW_BLOCKED")
    assert refused["error"]["details"]["violations"][0]["pointer"] == "/definitions/0"
    assert console.decide("approve", found, force=True)[0] == 200
    assert folder.pinned["tools"]["send"]["annotations"] == {}
    folder.offer(SEND, LIST)
    assert run("pin", cwd=folder.path).code == 0
