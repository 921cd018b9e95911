"""Requests in any revision, messages of any contract, and questions on the way."""

from __future__ import annotations

import enum
import uuid
from datetime import date
from typing import Any

import pytest

from portbook import NotJSON
from portbook.testing import Inquiry, TestClient
from portbook.testing.mcp_requests import json_of
from support.shop_toolset import toolset

INVOKE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "mcp.tool.invoke",
    "params": {"tool": "mcp.tool:stock", "input": {}},
}

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


def reason_of(answer: Any) -> str:
    return answer["error"]["data"]["reason"]


def test_a_request_is_in_the_revision_of_the_client() -> None:
    with TestClient(toolset, revision="2025-11-25") as client:
        assert client.request("ping")["result"] == {}
        listed = client.request("tools/list", {})["result"]["tools"]
        assert "icons" not in listed[0]
        newest = client.in_revision("2026-07-28")
        assert newest.request("tools/list")["result"]["resultType"] == "complete"


def test_a_revision_that_there_is_not_is_the_tests_mistake() -> None:
    with pytest.raises(LookupError, match="no revision '2023-01-01' of MCP, but 2024-11-05, "):
        TestClient(toolset, revision="2023-01-01")
    assert toolset._watchers == []


def test_answers_that_can_answer_nothing_are_the_tests_mistake() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="answers= is a mapping of fields or a function, not int"):
        TestClient(toolset, answers=wrong)
    with TestClient(toolset) as client, pytest.raises(TypeError, match="answers= is a mapping"):
        client.with_answers(wrong)


@ERAS
def test_a_call_has_the_limit_that_a_message_has(revision: str) -> None:
    with TestClient(toolset, revision=revision) as client:
        result = client.call("orders", customer="x" * 1_048_576)
        assert (result.reason, result.executed) == ("FRAME_TOO_LARGE", False)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_notification_is_no_request(revision: str) -> None:
    with (
        TestClient(toolset, revision=revision) as client,
        pytest.raises(ValueError, match=r"notifications/cancelled is a notification, .*: send it with send"),
    ):
        client.request("notifications/cancelled", {"requestId": 1})


@ERAS
def test_an_answer_that_is_not_json_is_raised_by_the_call(revision: str) -> None:
    def answers(inquiry: Inquiry) -> Any:
        return {"page": True, "sample": {"content": {1, 2}}}[inquiry.kind]

    with (
        TestClient(toolset, answers=answers, revision=revision) as client,
        pytest.raises(NotJSON, match="/content: JSON cannot hold this set"),
    ):
        client.call("survey")


def test_messages_of_any_contract_are_sent_as_they_are() -> None:
    with TestClient(toolset) as client:
        assert client.send(INVOKE) == {"jsonrpc": "2.0", "id": 1, "result": 7}
        assert reason_of(client.send(b'{"a":1,"a":2}')) == "NOT_JSON"
        assert reason_of(client.send("[]")) == "NOT_JSONRPC"
        assert "payload_too_large" in str(client.send(b" " * 1_048_577)["result"])
        assert client.send({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
        assert [record["status"] for record in client.records][:2] == ["ok", "error"]


def test_a_handshake_can_be_made_by_hand() -> None:
    with TestClient(toolset) as client:
        asked = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "me", "version": "1"},
        }
        opened = client.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked})
        assert opened["result"]["protocolVersion"] == "2025-06-18"
        assert client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})["result"] == {}


@ERAS
def test_a_mapping_fills_in_forms(revision: str) -> None:
    with TestClient(toolset, answers={"size": "L", "colour": "red"}, revision=revision) as client:
        result = client.call("fit")
        assert result.value == "accept L"
        assert [(each.kind, each.message, [*each.fields]) for each in result.asked] == [
            ("form", "Which size?", ["size"])
        ]
        assert len(result.records) == (1 if revision == "2025-11-25" else 2)


@ERAS
def test_a_function_answers_everything(revision: str) -> None:
    asked: list[str] = []

    async def answers(inquiry: Inquiry) -> Any:
        asked.append(f"{inquiry.kind} {inquiry.message}".strip())
        return {"page": True, "sample": "blue", "form": False, "roots": ["file:///shop"]}[inquiry.kind]

    with TestClient(toolset, answers=answers, revision=revision) as client:
        result = client.call("survey")
        assert result.value == ["accept", "blue", "decline", [{"uri": "file:///shop"}]]
        assert sorted(asked) == ["form Again?", "page Sign in.", "roots", "sample Name a colour."]
        assert len(result.asked) == 4


@ERAS
def test_a_client_without_answers_declares_nothing(revision: str) -> None:
    with TestClient(toolset, revision=revision) as client:
        assert client.call("fit").reason in ("NO_ANSWER", "MISSING_CAPABILITY")
        assert client.with_answers({"size": "S"}).call("fit").value == "accept S"


@ERAS
def test_an_answer_that_the_test_does_not_have_is_raised_by_the_call(revision: str) -> None:
    with (
        TestClient(toolset, answers={"colour": "red"}, revision=revision) as client,
        pytest.raises(LookupError, match=r"the tool asks 'Which size\?', and answers has no size"),
    ):
        client.call("fit")


@ERAS
def test_what_the_function_raises_is_raised_by_the_call(revision: str) -> None:
    def answers(inquiry: Inquiry) -> Any:
        raise ZeroDivisionError

    with TestClient(toolset, answers=answers, revision=revision) as client:
        with pytest.raises(ZeroDivisionError):
            client.call("fit")
        assert client.call("stock").value == 7


def test_the_person_behind_the_client_can_approve() -> None:
    policy = {"approval": "writes", "approver": "client"}
    with TestClient(toolset, policy=policy, answers={"approve": True}) as client:
        assert client.call("refund", order=5, cents=1).value == {"refunded": 1}
        denying = client.with_answers({"approve": False})
        assert denying.call("refund", order=6, cents=1).reason == "APPROVAL_DENIED"


HINT = "convert it first"


class Size(enum.Enum):
    LARGE = "L"


def arguments(value: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"arguments": {"customer": value}, "_meta": {}}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "/customer: JSON has no number that is not finite"),
        ({1, 2}, f"/customer: JSON cannot hold this set; {HINT}"),
        (date(2026, 1, 1), f"/customer: JSON cannot hold this datetime.date; {HINT}"),
        ([{"a/b": b""}], f"/customer/0/a~1b: JSON cannot hold this bytes; {HINT}"),
        ((1, date(2026, 1, 1)), f"/customer/1: JSON cannot hold this datetime.date; {HINT}"),
        ("\ud800", f"/customer: JSON cannot hold this str; {HINT}"),
        ({5: "five"}, "/customer: a key is int; JSON has keys of str alone"),
    ],
    ids=["nan", "set", "date", "inside", "tuple", "lone surrogate", "key"],
)
def test_what_is_not_json_is_named_with_its_place_and_type(value: Any, words: str) -> None:
    with pytest.raises(NotJSON) as raised:
        json_of(arguments(value))
    assert str(raised.value) == f"argument {words}"


def test_beside_arguments_the_place_is_that_in_the_message() -> None:
    with pytest.raises(NotJSON, match=f"^/params/_meta/day: JSON cannot hold this datetime.date; {HINT}"):
        json_of({"params": {"arguments": {}, "_meta": {"day": date(2026, 1, 1)}}})
    with pytest.raises(NotJSON, match=rf"^\(root\): JSON cannot hold this object; {HINT}"):
        json_of(object())


def test_what_contains_itself_is_nested_too_deeply() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotJSON, match="nested too deeply"):
        json_of(arguments(endless))


def test_what_json_can_hold_is_written() -> None:
    held = [1, 2**70, 0.5, None, (True,), Size.LARGE, uuid.UUID(int=0)]
    assert json_of({"held": held[:5]}) == b'{"held":[1,1180591620717411303424,0.5,null,[true]]}'
    assert json_of(held[5:]) == b'["L","00000000-0000-0000-0000-000000000000"]'
