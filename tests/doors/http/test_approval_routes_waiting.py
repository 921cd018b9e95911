"""`GET /operator/waiting`: what a person needs to decide."""

from __future__ import annotations

import json

import pytest

from support.operator_console import CANARY, Console


@pytest.mark.covers("design.operator.waiting")
def test_what_waits_is_shown_beside_what_was_approved_before(console: Console) -> None:
    first = console.call("notes.keep", name="a", tags=["x"])["error"]["details"]["approval_id"]
    (waiting,) = console.ask("/operator/waiting")[1]["waiting"]
    assert (waiting["approval_id"], waiting["effect"], waiting["is_current"]) == (first, "write", True)
    assert waiting["description"].startswith("Keep a note.")
    assert waiting["rule"] == "ask before keeping"
    assert (waiting["last_approved"], waiting["changes"]) == (None, [])
    assert 0 <= waiting["age_s"] < 60 < waiting["expires_in_s"]
    assert console.ask(f"/approvals/{first}", {"decision": "approve", "reason": "fine"})[0] == 200
    console.call("notes.keep", name="b", tags=["x"], password=CANARY)
    found = console.ask("/operator/waiting")[1]
    assert CANARY not in json.dumps(found)
    (waiting,) = found["waiting"]
    assert waiting["last_approved"]["approval_id"] == first
    assert waiting["last_approved"]["arguments"] == {"name": "a", "tags": ["x"]}
    assert [(each["op"], each["pointer"], each["before"]) for each in waiting["changes"]] == [
        ("replace", "/name", "a"),
        ("add", "/password", None),
    ]
    assert console.ask(f"/approvals/{waiting['approval_id']}", {"decision": "deny"})[0] == 200
    assert console.ask("/operator/waiting")[1] == {"waiting": [], "more": 0}


def test_one_call_is_asked_for_by_its_approval(console: Console) -> None:
    calls = [console.call("notes.keep", name=name) for name in ("one", "two")]
    one, two = (call["error"]["details"]["approval_id"] for call in calls)
    (waiting,) = console.ask(f"/operator/waiting?id={two}")[1]["waiting"]
    assert waiting == {
        **next(each for each in console.ask("/operator/waiting")[1]["waiting"] if each["approval_id"] == two),
        "age_s": waiting["age_s"],
        "expires_in_s": waiting["expires_in_s"],
    }
    for each in (one, two):
        assert console.ask(f"/approvals/{each}", {"decision": "deny"})[0] == 200
    for settled in (two, "unknown"):
        assert console.ask(f"/operator/waiting?id={settled}")[1] == {"waiting": [], "more": 0}
