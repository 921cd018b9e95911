"""The record of a call in its two views, and the intent: their fields, and what never stands in them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from portbook.audit.record_views_and_fields import RecordForms
from portbook.errors import REASONS, Ending, Failed, Finding, Reason, Refused
from portbook.model import NO_CONTEXT, Arrival, Call, Caller, CallerContext, Done, Outcome
from portbook.policy import Action, Decision
from portbook.redaction import Redactor
from portbook.stages.recorder import both_views, intent_view, without_secrets
from portbook.stages.state import Trail
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec

IDS = (b"request-id", b"trace-id", b"span-id")
FIELDS = [
    "ts", "agentId", "taskId", "stepId", "transport", "route", "method", "requestId", "traceId", "spanId",
    "status", "durationMs", "attempt", "inputBytes", "outputBytes", "metadata", "error",
]  # fmt: skip
METADATA = ["schemaVersion", "deterministic", "toolId", "promptId"]
ERROR = ["code", "reason", "stage", "executed", "note", "violations"]
VIOLATION = ["pointer", "schemaPointer", "keyword", "message"]
EXECUTION = [
    "record_version",
    "timestamp", "session_id", "trace_id", "request_id", "tool_id", "endpoint", "domain", "method",
    "agent_step", "attempt", "status_code", "latency_ms", "redaction_applied", "decision", "rule", "caller",
    "approval_id", "effect", "basis", "input_bytes", "output_bytes",
]  # fmt: skip
INTENT = [
    "record_version",
    "timestamp", "session_id", "trace_id", "request_id", "tool_id", "endpoint", "domain", "method",
    "agent_step", "attempt", "decision", "rule", "caller", "approval_id", "effect", "basis", "input_bytes",
]  # fmt: skip


def a_call(**changes: Any) -> Call:
    call = Call(
        arrival=Arrival("http", "/rpc", key="canary-key", traceparent="canary-traceparent"),
        method="mcp.tool.invoke",
        tool="docs.search",
        arguments={"query": "canary-argument"},
        input_bytes=27,
        context=CallerContext(),
        trace="canary-trace",
        content={"params": "canary-content"},
    )
    return replace(call, **changes)


def view(outcome: Outcome, call: Call | None = None, *, deterministic: bool = False) -> Any:
    return json.loads(
        both_views(
            call or a_call(),
            outcome,
            IDS,
            Trail(),
            ts=b"2026-01-02T03:04:05.678Z",
            duration_us=1250,
            deterministic=deterministic,
        )[0]
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
    assert (error["code"], error["reason"], error["stage"]) == (
        row.canonical.code,
        reason.value,
        row.stage.value,
    )
    assert error["executed"] is (kind is Failed)


def test_what_the_caller_says_of_itself_is_copied() -> None:
    record = view(Done(b"1"), a_call(context=CallerContext("agent", "task", "step-7", 3, "prompt")))
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


# --- the execution view, and the intent


def a_tool(operation: HttpOperation | None = None) -> Tool:
    spec = ToolSpec("docs.search", "", {}, True, Effect.WRITE, operation=operation)
    found = Catalog([spec]).find("docs.search")
    assert found is not None
    return found


OPERATION = HttpOperation("orders", "http://127.0.0.1:9000/api", "POST", "/orders/{id}")
DECISION = Decision(Action.ASK, "a person", "portbook.toml:7", "", Reason.APPROVAL_REQUIRED)


def a_trail(operation: HttpOperation | None = OPERATION) -> Trail:
    return Trail(Caller("ada"), a_tool(operation), DECISION, "ticket-1", is_redacted=True)


def execution(outcome: Outcome, call: Call | None = None, trail: Trail | None = None) -> Any:
    return json.loads(
        both_views(
            call or a_call(),
            outcome,
            IDS,
            trail or a_trail(),
            ts=b"2026-01-02T03:04:05.678Z",
            duration_us=1250,
            deterministic=False,
        )[1]
    )


def test_the_record_of_a_withheld_tool_has_the_difference() -> None:
    refused = Refused(Reason.TOOL_WITHHELD)
    assert "difference" not in execution(refused)
    refused.difference = {"name": "drop\u202e", "changes": [{"grade": "widened"}]}
    assert execution(refused)["difference"] == refused.difference
    assert list(execution(refused)) == [*EXECUTION[:13], "error_class", *EXECUTION[13:], "difference"]


@pytest.mark.covers("002.log.fields")
def test_the_execution_record_of_a_success() -> None:
    context = CallerContext(step_id=4, attempt=2, session="s-1")
    record = execution(Done(b'{"hits":"canary-result"}'), a_call(context=context))
    assert record == {
        "record_version": 2,
        "timestamp": "2026-01-02T03:04:05.678Z",
        "session_id": "s-1",
        "trace_id": "trace-id",
        "request_id": "request-id",
        "tool_id": "mcp.tool:docs.search",
        "endpoint": "http://127.0.0.1:9000/api/orders/{id}",
        "domain": "127.0.0.1:9000",
        "method": "POST",
        "agent_step": 4,
        "attempt": 2,
        "status_code": 200,
        "latency_ms": 1.25,
        "redaction_applied": True,
        "decision": "ask",
        "rule": "a person (portbook.toml:7)",
        "caller": "ada",
        "approval_id": "ticket-1",
        "effect": "write",
        "basis": None,
        "input_bytes": 27,
        "output_bytes": 24,
    }
    assert list(record) == EXECUTION


@pytest.mark.covers("002.log.error-class")
@pytest.mark.parametrize("kind", [Refused, Failed])
@pytest.mark.parametrize("reason", list(Reason))
def test_an_execution_record_has_an_error_class_where_it_ended_badly_and_only_there(
    kind: type[Ending], reason: Reason
) -> None:
    ending: Any = kind(reason)
    record = execution(ending)
    assert (record["status_code"], record["error_class"]) == (REASONS[reason].http, reason.value)
    assert record["output_bytes"] == 0
    fields = [*EXECUTION]
    fields.insert(fields.index("redaction_applied"), "error_class")
    assert list(record) == fields


def test_a_call_that_was_turned_away_at_once_met_nothing_on_its_way() -> None:
    record = execution(Refused(Reason.NOT_JSON), a_call(tool=None, input_bytes=0), Trail())
    met = ["tool_id", "endpoint", "domain", "method", "decision", "rule", "caller", "approval_id", "effect"]
    assert {name: record[name] for name in met} == dict.fromkeys(met)
    assert record["redaction_applied"] is False


def test_a_function_has_no_endpoint_no_domain_and_no_method() -> None:
    record = execution(Done(b"1"), trail=a_trail(None))
    assert (record["endpoint"], record["domain"], record["method"]) == (None, None, None)


def test_the_session_is_the_calls_own_or_else_the_transports() -> None:
    arrival = Arrival("http", "/rpc", session="of the transport")
    own = a_call(arrival=arrival, context=CallerContext(session="its own"))
    assert execution(Done(b"1"), own)["session_id"] == "its own"
    assert execution(Done(b"1"), a_call(arrival=arrival))["session_id"] == "of the transport"
    assert execution(Done(b"1"))["session_id"] is None


@pytest.mark.covers("002.log.intent")
def test_an_intent_says_what_is_about_to_run_as_its_outcome_will() -> None:
    call = a_call(context=CallerContext(step_id=4, attempt=2, session="s-1"))
    intent = json.loads(intent_view(call, IDS, a_trail(), ts=b"2026-01-02T03:04:05.678Z"))
    assert list(intent) == INTENT
    outcome = execution(Done(b"1"), call)
    assert intent == {name: outcome[name] for name in INTENT}


@pytest.mark.parametrize(
    "outcome", [Done(b'"canary-result"'), Refused(Reason.BAD_ARGUMENTS)], ids=["ok", "no"]
)
def test_neither_view_holds_an_argument_a_result_or_a_credential(outcome: Outcome) -> None:
    assert "canary" not in json.dumps(execution(outcome))
    assert "canary" not in json.dumps(json.loads(intent_view(a_call(), IDS, a_trail(), ts=b"")))


def test_a_percent_sign_in_a_callers_words_or_in_an_error_is_only_text() -> None:
    call = a_call(context=CallerContext(agent_id="50 %b", session="%(ts)b %%"), method="%d%s")
    refusal = Refused(Reason.BAD_ARGUMENTS, (Finding("/%b", "100 %", "%d", ""),))
    envelope, record = view(refusal, call), execution(refusal, call)
    assert (envelope["agentId"], envelope["method"]) == ("50 %b", "%d%s")
    assert envelope["error"]["violations"][0]["pointer"] == "/%b"
    assert record["session_id"] == "%(ts)b %%"
    assert json.loads(intent_view(call, IDS, a_trail(), ts=b""))["session_id"] == "%(ts)b %%"


@pytest.mark.parametrize(
    ("duration_us", "ms"), [(0, "0.0"), (1, "0.001"), (500, "0.5"), (1250, "1.25"), (10_020, "10.02")]
)
def test_a_duration_is_written_in_milliseconds_without_zeros_at_its_end(duration_us: int, ms: str) -> None:
    written = both_views(a_call(), Done(b"1"), IDS, Trail(), b"", duration_us, deterministic=False)[0]
    assert f'"durationMs":{ms},'.encode() in written


FORGERY = '1"}\n{"status":"ok"}\x1b[2J\u202e\u2028'


def test_what_a_caller_says_of_itself_forges_no_line_in_either_view() -> None:
    context = CallerContext(FORGERY, FORGERY, FORGERY, 1, FORGERY, FORGERY)
    call = a_call(context=context, method=FORGERY)
    envelope, executed = view(Done(b"1"), call), execution(Done(b"1"), call)
    said = [envelope[name] for name in ("agentId", "taskId", "stepId", "method")]
    said += [envelope["metadata"]["promptId"], executed["session_id"], executed["agent_step"]]
    assert all(text.isprintable() and text.isascii() for text in said)
    assert all(r"\x1b" in text.lower() or r"\u001b" in text.lower() for text in said)


def test_what_a_caller_says_of_itself_is_shortened() -> None:
    record = execution(Done(b"1"), a_call(context=CallerContext(session="x" * 5000)))
    assert len(record["session_id"]) < 300


SECRET = "canary_4711"
REDACTOR = Redactor(secrets=[SECRET])


def test_what_a_sender_says_of_itself_is_recorded_without_secrets() -> None:
    said = f"it is {SECRET}"
    call = a_call(
        arrival=Arrival("http", "/rpc", session=said),
        method=said,
        tool=SECRET,
        context=CallerContext(said, said, said, 3, said, said, said),
        flaw=Refused(Reason.BAD_ENVELOPE),
    )
    clean = without_secrets(call, Trail(), REDACTOR)
    assert SECRET not in json.dumps([view(Done(b"1"), clean), execution(Done(b"1"), clean, Trail())])
    assert clean.context == CallerContext(*["it is [redacted]"] * 3, 3, *["it is [redacted]"] * 3)  # type: ignore[arg-type]
    without_session = replace(call, context=CallerContext())
    shown = execution(Done(b"1"), without_secrets(without_session, Trail(), REDACTOR), Trail())
    assert shown["session_id"] == "it is [redacted]"


def test_a_call_that_says_nothing_of_itself_is_recorded_as_it_is() -> None:
    call = a_call()
    assert without_secrets(call, a_trail(), REDACTOR) is call


def test_the_name_of_a_tool_that_there_is_stays_as_it_is() -> None:
    call = a_call(tool=SECRET)
    assert without_secrets(call, a_trail(), REDACTOR).tool == SECRET
    assert without_secrets(call, Trail(), REDACTOR).tool == "[redacted]"


def test_both_views_say_that_a_result_was_not_checked() -> None:
    assert "outputChecked" not in view(Done(b"1"))["metadata"]
    assert "output_checked" not in execution(Done(b"1"))
    trail = a_trail()
    assert trail.tool is not None
    trail.tool = replace(trail.tool, spec=replace(trail.tool.spec, is_result_unchecked=True))
    assert execution(Done(b"1"), trail=trail)["output_checked"] is False
    record = json.loads(
        both_views(a_call(), Done(b"1"), IDS, trail, ts=b"", duration_us=1000, deterministic=False)[0]
    )
    assert record["metadata"]["outputChecked"] is False


def test_a_kept_form_is_that_of_its_session_and_few_are_kept() -> None:
    forms = RecordForms()
    trail = Trail(caller=Caller("ada", ("*",)), forms=forms)
    for number in [*range(300), 0]:
        session = f"session-{number}"
        call = a_call(context=NO_CONTEXT, arrival=Arrival("http", "/mcp", session=session))
        written = both_views(call, Done(b"1"), IDS, trail, b"", 1000, deterministic=False)[1]
        assert json.loads(written)["session_id"] == session
    assert 0 < len(forms) <= 256
