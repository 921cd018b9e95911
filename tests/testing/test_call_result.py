"""How a call ended, as a test sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portbook.testing import NoResult, TestClient, Violation
from support.shop_toolset import LARGE_REFUNDS, toolset


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(toolset, policy=LARGE_REFUNDS) as client:
        yield client


def test_the_value_of_a_call_that_has_none_says_why(client: TestClient) -> None:
    result = client.call("refund", order="five")
    with pytest.raises(NoResult) as raised:
        _ = result.value
    assert raised.value.result is result
    assert str(raised.value) == (
        "refund: BAD_ARGUMENTS: The arguments do not match the tool's input schema. "
        "Fix the fields listed under violations.\n"
        '  (root): missing property "cents"\n'
        "  /order: expected integer"
    )


def test_a_denial_says_which_rule_it_was(client: TestClient) -> None:
    with pytest.raises(NoResult, match=r"wipe: POLICY_VIOLATION: .*\n  rule: nothing destructive"):
        client.call("wipe").raise_for_refusal()


def test_a_result_can_be_required_and_used_in_one_line(client: TestClient) -> None:
    assert client.call("stock").raise_for_refusal().logs[0].level == "debug"


def test_what_a_tool_raised_is_the_cause(client: TestClient) -> None:
    result = client.call("broken")
    assert result.reason == "TOOL_FAILED"
    assert result.executed
    assert isinstance(result.exception, KeyError)
    with pytest.raises(NoResult) as raised:
        _ = result.value
    assert raised.value.__cause__ is result.exception
    assert result.exception.__traceback__ is not None


def test_a_tools_own_words_are_the_message(client: TestClient) -> None:
    result = client.call("closed")
    assert (result.reason, result.message) == ("TOOL_ERROR", "The shop is closed.")
    assert (result.code, result.data, result.is_retryable) == (None, None, False)
    assert result.text == "The shop is closed."
    assert result.exception is None


def test_a_result_that_breaks_its_schema_names_the_place(client: TestClient) -> None:
    result = client.call("liar")
    assert (result.reason, result.executed) == ("BAD_RESULT", True)
    assert result.violations == [Violation("", "expected integer")]


def test_a_value_is_what_was_returned_even_where_no_schema_says_what_it_is(client: TestClient) -> None:
    assert client.call("count").value == "5"
    assert client.call("picture").value == [{"type": "image", "data": "AA==", "mimeType": "image/png"}]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_a_revision_that_has_no_place_for_a_value_has_its_text(client: TestClient, revision: str) -> None:
    assert client.in_revision(revision).call("count").value == "5"
    assert client.in_revision(revision).call("picture").text == ""


def test_an_envelope_is_there_where_it_is_asked_for(client: TestClient) -> None:
    result = client.with_meta({"capture_provenance": True}).call("stock")
    assert result.envelope is not None
    assert result.envelope["provenance"]["tool"]["name"] == "stock"
    assert result.value == 7
    assert client.call("stock").envelope is None


def test_its_repr_is_one_line_that_tells_how_it_ended(client: TestClient) -> None:
    assert repr(client.call("orders", customer="Ada")) == "<CallResult orders: [3, 5]>"
    assert repr(client.call("orders")) == "<CallResult orders: BAD_ARGUMENTS>"
    assert repr(client.call("wipe")) == "<CallResult wipe: POLICY_VIOLATION by 'nothing destructive'>"


def test_details_are_what_the_caller_is_told(client: TestClient) -> None:
    details = client.call("refund", order=5, cents=20_000).details
    assert [*details] == ["approval_id", "expires_at"]
    assert details["expires_at"] == "2026-01-01T01:00:00.000Z"
