"""The record of a call: its fields, their order, and what never stands in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.audit import envelope_view
from portbook.clock import Identity
from portbook.errors import REASONS, Ending, Failed, Finding, Reason, Refused
from portbook.model import Arrival, Call, Context, Done, Outcome

IDENTITY = Identity("request-id", "trace-id", "span-id")
FIELDS = [
    "ts", "agentId", "taskId", "stepId", "transport", "route", "method", "requestId", "traceId", "spanId",
    "status", "durationMs", "attempt", "inputBytes", "outputBytes", "metadata", "error",
]  # fmt: skip
METADATA = ["schemaVersion", "deterministic", "toolId", "promptId"]
ERROR = ["code", "reason", "stage", "executed", "note", "violations"]
VIOLATION = ["pointer", "schemaPointer", "keyword", "message"]


def a_call(**changes: Any) -> Call:
    call = Call(
        arrival=Arrival("http", "/rpc", key="canary-key", traceparent="canary-traceparent"),
        method="mcp.tool.invoke",
        tool="docs.search",
        arguments={"query": "canary-argument"},
        input_bytes=27,
        context=Context(),
        trace="canary-trace",
        content={"params": "canary-content"},
    )
    return call._replace(**changes)


def view(outcome: Outcome, call: Call | None = None, *, deterministic: bool = False) -> Any:
    return envelope_view(
        call or a_call(),
        outcome,
        IDENTITY,
        ts="2026-01-02T03:04:05.678Z",
        duration_ms=1.25,
        deterministic=deterministic,
    )


def test_the_record_of_a_success() -> None:
    assert view(Done(b'{"hits":"canary-result"}')) == {
        "ts": "2026-01-02T03:04:05.678Z",
        "agentId": None,
        "taskId": None,
        "stepId": 1,
        "transport": "http",
        "route": "/rpc",
        "method": "mcp.tool.invoke",
        "requestId": "request-id",
        "traceId": "trace-id",
        "spanId": "span-id",
        "status": "ok",
        "durationMs": 1.25,
        "attempt": 1,
        "inputBytes": 27,
        "outputBytes": 24,
        "metadata": {
            "schemaVersion": "1.0.0",
            "deterministic": False,
            "toolId": "mcp.tool:docs.search",
            "promptId": None,
        },
        "error": None,
    }


def test_the_record_of_a_refusal() -> None:
    finding = Finding("/query", "expected string", "type", "/properties/query/type")
    record = view(Refused(Reason.BAD_ARGUMENTS, (finding,)))
    assert (record["status"], record["outputBytes"]) == ("error", 0)
    assert record["error"] == {
        "code": "INVALID_INPUT",
        "reason": "BAD_ARGUMENTS",
        "stage": "arguments",
        "executed": False,
        "note": None,
        "violations": [
            {
                "pointer": "/query",
                "schemaPointer": "/properties/query/type",
                "keyword": "type",
                "message": "expected string",
            }
        ],
    }


def test_the_record_of_a_failure_says_that_it_ran_and_where_it_broke() -> None:
    error = view(Failed(Reason.TOOL_FAILED, note="ValueError at tools.py:3 in f"))["error"]
    assert (error["executed"], error["note"]) == (True, "ValueError at tools.py:3 in f")
    assert error["violations"] == []


@pytest.mark.parametrize(
    "outcome", [Done(b"1"), Refused(Reason.UNKNOWN_TOOL), Failed(Reason.TIMEOUT)], ids=["ok", "no", "failed"]
)
def test_every_record_has_the_same_fields_in_the_same_order(outcome: Outcome) -> None:
    record = view(outcome)
    assert list(record) == FIELDS
    assert list(record["metadata"]) == METADATA


def test_errors_and_violations_have_their_fields_in_order() -> None:
    error = view(Refused(Reason.BAD_ENVELOPE, (Finding("", "", "", ""),)))["error"]
    assert list(error) == ERROR
    assert list(error["violations"][0]) == VIOLATION


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("kind", [Refused, Failed])
def test_an_error_is_named_as_the_table_of_reasons_has_it(kind: type[Ending], reason: Reason) -> None:
    ending: Any = kind(reason)
    error = view(ending)["error"]
    row = REASONS[reason]
    assert (error["code"], error["reason"], error["stage"]) == (row.canonical, reason.value, row.stage.value)
    assert error["executed"] is (kind is Failed)


def test_what_the_caller_says_of_itself_is_copied() -> None:
    record = view(Done(b"1"), a_call(context=Context("agent", "task", "step-7", 3, "prompt")))
    assert [record[name] for name in ("agentId", "taskId", "stepId", "attempt")] == [
        "agent",
        "task",
        "step-7",
        3,
    ]
    assert record["metadata"]["promptId"] == "prompt"


def test_a_call_that_could_not_be_read_has_no_tool_and_no_method() -> None:
    record = view(Refused(Reason.NOT_JSON), a_call(method=None, tool=None, input_bytes=0))
    assert (record["method"], record["metadata"]["toolId"], record["inputBytes"]) == (None, None, 0)


def test_deterministic_ids_are_marked() -> None:
    assert view(Done(b"1"), deterministic=True)["metadata"]["deterministic"] is True


def test_the_transport_and_route_are_those_of_the_door() -> None:
    record = view(Done(b"1"), a_call(arrival=Arrival("stdio", "stdio")))
    assert (record["transport"], record["route"]) == ("stdio", "stdio")


def test_at_most_a_hundred_violations_are_recorded_and_they_are_the_first() -> None:
    findings = tuple(Finding(f"/{number:03}", "expected string", "type", "") for number in range(500))
    violations = view(Refused(Reason.BAD_ARGUMENTS, findings))["error"]["violations"]
    assert [violation["pointer"] for violation in violations] == [f"/{number:03}" for number in range(100)]


@pytest.mark.parametrize(
    "outcome", [Done(b'"canary-result"'), Refused(Reason.BAD_ARGUMENTS)], ids=["ok", "no"]
)
def test_a_record_holds_no_argument_no_result_and_no_credential(outcome: Outcome) -> None:
    assert "canary" not in json.dumps(view(outcome))
