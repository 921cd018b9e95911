"""Callers, approvals and the clock: what both clients have alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portbook.testing import Approval, TestClient, Undecidable
from support.shop_toolset import LARGE_REFUNDS, toolset


@pytest.fixture
def client() -> Iterator[TestClient]:
    callers = {"ada": ["*"], "guest": ["orders"]}
    with TestClient(toolset, policy={**LARGE_REFUNDS, "max_calls_per_minute": 60}, callers=callers) as client:
        yield client


def test_a_caller_has_its_name_in_the_records_and_sees_its_tools_alone(client: TestClient) -> None:
    guest = client.as_caller("guest")
    assert guest.call("orders", customer="Ada").execution["caller"] == "guest"
    assert guest.call("stock").reason == "UNKNOWN_TOOL"
    assert [record["caller"] for record in client.executions] == ["guest", "guest"]


def test_a_caller_that_nobody_named_is_the_tests_mistake(client: TestClient) -> None:
    with pytest.raises(LookupError, match=r"no caller 'bob' in callers= or the settings; known: ada, guest"):
        client.as_caller("bob")


def test_a_wrong_key_is_refused(client: TestClient) -> None:
    assert client.with_key("wrong").call("stock").reason == "UNAUTHORIZED"
    assert client.as_caller("ada").with_key(None).call("stock").execution["caller"] == "anonymous"


def test_a_session_can_be_named(client: TestClient) -> None:
    named = client.with_meta({"portbook/session_id": "s-1"}).with_meta({"portbook/attempt": 2})
    execution = named.call("stock").execution
    assert (execution["session_id"], execution["attempt"]) == ("s-1", 2)


def test_pending_approvals_are_shown_as_the_operator_sees_them(client: TestClient) -> None:
    client.as_caller("ada").call("refund", order=5, cents=20_000)
    [pending] = client.pending
    assert pending == Approval(
        id=pending.id,
        state="pending",
        tool="refund",
        arguments={"order": 5, "cents": 20_000},
        caller="ada",
        rule="large refunds need a person",
        expires_at="2026-01-01T01:00:00.000Z",
        reason=None,
    )
    decided = client.deny(pending, reason="too much")
    assert (decided.state, decided.reason) == ("denied", "too much")
    assert client.pending == []
    assert client.approvals() == client.approvals("denied") == [decided]
    named = client.as_caller("ada").with_meta({"portbook/approval_id": pending.id})
    assert named.call("refund", order=5, cents=20_000).reason == "APPROVAL_DENIED"


def test_a_decision_is_the_operators_and_recorded(client: TestClient) -> None:
    client.approve(client.call("refund", order=5, cents=20_000))
    record, execution = client.records[-1], client.executions[-1]
    assert (record["method"], record["status"]) == ("approvals.decide", "ok")
    assert (execution["caller"], execution["decision"]) == ("operator", "approve")


def test_approvals_go_by_result_by_value_by_id_by_tool_and_alone(client: TestClient) -> None:
    for order in range(5):
        result = client.call("refund", order=order, cents=20_000)
        [pending] = client.pending
        meant = [result, pending, pending.id, "refund", None][order]
        assert client.approve(meant).id == pending.id
        assert client.call("refund", order=order, cents=20_000).value == {"refunded": 20_000}


def test_an_approval_that_is_not_there_or_not_clear_is_the_tests_mistake(client: TestClient) -> None:
    with pytest.raises(LookupError, match="no approval is pending; pending: none"):
        client.approve()
    with pytest.raises(LookupError, match=r"<CallResult stock: 7> has no approval to decide on"):
        client.approve(client.call("stock"))
    first = client.call("refund", order=1, cents=20_000)
    with pytest.raises(
        LookupError, match=rf"no approval of 'refnd' is pending; pending: refund \({first.approval_id}"
    ):
        client.approve("refnd")
    client.call("refund", order=2, cents=20_000)
    with pytest.raises(LookupError, match="more than one approval of 'refund' is pending"):
        client.deny("refund")
    with pytest.raises(LookupError, match="more than one approval is pending"):
        client.approve()


def test_an_approval_that_was_used_or_has_expired_cannot_be_decided(client: TestClient) -> None:
    used = client.call("refund", order=1, cents=20_000)
    client.approve(used)
    client.call("refund", order=1, cents=20_000)
    with pytest.raises(Undecidable, match="its call has already run"):
        client.deny(used.approval_id)
    late = client.call("refund", order=2, cents=20_000)
    client.clock.advance(3600)
    with pytest.raises(Undecidable, match="it has expired"):
        client.approve(late)
    assert client.records[-1]["error"]["reason"] == "APPROVAL_SETTLED"


def test_a_state_that_there_is_not_is_the_tests_mistake(client: TestClient) -> None:
    with pytest.raises(ValueError, match="no approval is ever 'pendng'; the states are pending, approved,"):
        client.approvals("pendng")


def test_there_is_no_limit_to_pending_approvals() -> None:
    with TestClient(toolset, policy=LARGE_REFUNDS) as client:
        for order in range(101):
            client.call("refund", order=order, cents=20_000)
        assert [each.arguments["order"] for each in client.pending] == [*range(101)]
        assert len(client.approvals()) == 101


def test_a_reason_is_stored_without_secrets(client: TestClient) -> None:
    client.call("refund", order=1, cents=20_000)
    assert client.approve(reason="password=hunter2hunter2").reason == "password=[redacted]"


def test_the_operator_has_the_key_of_the_environment() -> None:
    key = "opensesame-of-the-shop"
    with TestClient(toolset, policy=LARGE_REFUNDS, environ={"PORTBOOK_OPERATOR_KEY": key}) as client:
        result = client.call("refund", order=1, cents=20_000)
        assert client.approve(result, reason=f"with {key}").reason == "with [redacted]"
        assert client.call("refund", order=1, cents=20_000).value == {"refunded": 20_000}


def test_a_decision_that_is_refused_says_so(client: TestClient) -> None:
    client.call("refund", order=1, cents=20_000)
    client._world.operator_key = "wrong"
    with pytest.raises(RuntimeError, match=r"the decision was refused: UNAUTHORIZED: "):
        client.approve()


def test_an_approval_expires_as_the_clock_moves(client: TestClient) -> None:
    client.approve(client.call("refund", order=1, cents=20_000))
    client.clock.advance(3599.999)
    assert [each.state for each in client.approvals()] == ["approved"]
    client.clock.advance(0.001)
    assert [each.state for each in client.approvals()] == ["expired"]
    assert client.call("refund", order=1, cents=20_000).reason == "APPROVAL_REQUIRED"


def test_rates_refill_as_the_clock_moves(client: TestClient) -> None:
    assert {client.call("stock").reason for _ in range(60)} == {None}
    limited = client.call("stock")
    assert (limited.reason, limited.details) == ("RATE_LIMITED", {"retry_after_s": 1})
    client.clock.advance(1)
    assert client.call("stock").value == 7


def test_notifications_are_those_of_this_client(client: TestClient) -> None:
    live = client.in_revision("2025-11-25")
    live.call("stock")
    toolset.disable("count")
    toolset.enable("count")
    methods = [each["method"] for each in live.notifications]
    assert methods[-2:] == ["notifications/tools/list_changed"] * 2
    assert methods[0] == "notifications/progress"
    assert client.notifications == []
