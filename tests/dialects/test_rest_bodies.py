"""The rest dialect: what is read of a body, what is refused and where, and the one shape of answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.dialects.rest_bodies import Rest, described, error_of, rest_answer
from portbook.errors import REASONS, Ending, Failed, Finding, Reason, Refused
from portbook.model import Arrival, Call, Caller, CallerContext, Completed, Done, Identity, Outcome
from portbook.policy import Limits, read_policy
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.contract_registry import SchemaRegistry
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec

ARRIVAL = Arrival("http", "/execute")
BODY: dict[str, Any] = {"session_id": "s-1", "tool_id": "mcp.tool:orders.get", "args": {"id": "7"}}
CANARY = "canary-4711"


@pytest.fixture(scope="module")
def rest() -> Rest:
    return Rest(SchemaRegistry().load_execute())


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def flaw_of(call: Call) -> list[tuple[str, str]]:
    assert call.flaw is not None
    assert call.flaw.reason is Reason.BAD_PARAMS
    return [(finding.pointer, finding.message) for finding in call.flaw.findings]


# --- reading


def test_a_body_with_what_is_required_is_a_call(rest: Rest) -> None:
    call = rest.read(BODY, ARRIVAL).call
    assert call.flaw is None
    assert (call.arrival, call.method, call.tool) == (ARRIVAL, "execute", "orders.get")
    assert (call.arguments, call.input_bytes) == ({"id": "7"}, len('{"id":"7"}'))
    assert call.context == CallerContext(session="s-1")
    assert (call.trace, call.approval, call.wait_ms) == (None, None, 0)


def test_everything_that_a_body_may_say_is_read(rest: Rest) -> None:
    more = {
        "trace_id": "t-1",
        "correlation_id": "c-1",
        "agent_step": 4,
        "attempt": 2,
        "approval_id": "a-1",
        "wait_ms": 500,
    }
    call = rest.read({**BODY, **more}, ARRIVAL).call
    assert call.context == CallerContext(step_id=4, attempt=2, session="s-1", correlation="c-1")
    assert (call.trace, call.approval, call.wait_ms) == ("t-1", "a-1", 500)


@pytest.mark.covers("002.execute.tool-id")
@pytest.mark.parametrize(
    ("tool_id", "tool"),
    [
        case("with the prefix", "mcp.tool:orders.get", "orders.get"),
        case("without it", "orders.get", "orders.get"),
        case("no tool's name: unknown, not malformed", "Orders Get", None),
        case("the prefix alone", "mcp.tool:", None),
        case("the prefix twice", "mcp.tool:mcp.tool:x", None),
    ],
)
def test_a_tool_is_named_with_or_without_the_prefix(rest: Rest, tool_id: str, tool: str | None) -> None:
    call = rest.read({**BODY, "tool_id": tool_id}, ARRIVAL).call
    assert (call.tool, call.flaw) == (tool, None)


@pytest.mark.parametrize("number", [2, 2.0])
def test_a_whole_number_is_one_however_it_is_written(rest: Rest, number: float) -> None:
    call = rest.read({**BODY, "agent_step": number, "attempt": number, "wait_ms": number}, ARRIVAL).call
    assert (call.context.step_id, call.context.attempt, call.wait_ms) == (2, 2, 2)
    assert all(type(found) is int for found in (call.context.step_id, call.context.attempt, call.wait_ms))


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_the_trace_is_the_bodys_own_or_else_the_headers(rest: Rest) -> None:
    arrival = Arrival("http", "/execute", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    assert rest.read(BODY, arrival).call.trace == TRACE
    assert rest.read({**BODY, "trace_id": "its-own"}, arrival).call.trace == "its-own"


@pytest.mark.covers("002.execute.malformed")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        case("no session", {"session_id": ...}, [("", 'missing property "session_id"')]),
        case("no tool", {"tool_id": ...}, [("", 'missing property "tool_id"')]),
        case("no arguments", {"args": ...}, [("", 'missing property "args"')]),
        case("an empty session", {"session_id": ""}, [("/session_id", "shorter than 1 character")]),
        case("a session that is a number", {"session_id": 5}, [("/session_id", "expected string")]),
        case("a tool that is a number", {"tool_id": 5}, [("/tool_id", "expected string")]),
        case("arguments that are a list", {"args": []}, [("/args", "expected object")]),
        case("arguments that are null", {"args": None}, [("/args", "expected object")]),
        case("a trace with a line break", {"trace_id": "a\nb"}, [("/trace_id", None)]),
        case("a trace with a line break at its end", {"trace_id": "a\n"}, [("/trace_id", None)]),
        case("a step that is a text", {"agent_step": "1"}, [("/agent_step", "expected integer")]),
        case("half a step", {"agent_step": 1.5}, [("/agent_step", "expected integer")]),
        case("attempt zero", {"attempt": 0}, [("/attempt", "below the minimum 1")]),
        case("an attempt that is true", {"attempt": True}, [("/attempt", "expected integer")]),
        case("an empty approval", {"approval_id": ""}, [("/approval_id", "shorter than 1 character")]),
        case("to wait for ever", {"wait_ms": 600_001}, [("/wait_ms", "above the maximum 600000")]),
        case("to wait in the past", {"wait_ms": -1}, [("/wait_ms", "below the minimum 0")]),
        case("something else", {"arguments": {}}, [("", 'unexpected property "arguments"')]),
        case(
            "several at once",
            {"session_id": ..., "args": 5},
            [("", 'missing property "session_id"'), ("/args", "expected object")],
        ),
    ],
)
def test_what_is_malformed_or_missing_is_a_flaw_with_the_pointer_of_each_problem(
    rest: Rest, change: dict[str, Any], expected: list[tuple[str, str | None]]
) -> None:
    body = {name: value for name, value in {**BODY, **change}.items() if value is not ...}
    found = flaw_of(rest.read(body, ARRIVAL).call)
    assert [pointer for pointer, _ in found] == [pointer for pointer, _ in expected]
    assert all(want in (None, said) for (_, said), (_, want) in zip(found, expected, strict=True))


@pytest.mark.parametrize("body", [None, True, 5, "x", [], [BODY]], ids=repr)
def test_a_body_that_is_no_object_is_a_flaw(rest: Rest, body: Any) -> None:
    call = rest.read(body, ARRIVAL).call
    assert flaw_of(call) == [("", "expected object")]
    assert (call.tool, call.arguments, call.input_bytes) == (None, {}, 0)


def test_a_flawed_body_is_recorded_with_what_of_it_is_usable_and_redeems_nothing(rest: Rest) -> None:
    call = rest.read({**BODY, "attempt": "x", "approval_id": "a-1", "wait_ms": 5}, ARRIVAL).call
    assert (call.tool, call.input_bytes, call.context) == ("orders.get", 10, CallerContext())
    assert (call.approval, call.wait_ms) == (None, 0)


def test_a_flaw_quotes_nobody(rest: Rest) -> None:
    call = rest.read(
        {**BODY, "session_id": {"x": CANARY}, "attempt": CANARY, "trace_id": CANARY + "\n"}, ARRIVAL
    ).call
    assert CANARY not in repr(flaw_of(call))


@pytest.mark.parametrize(
    ("route", "given", "flaw"),
    [
        case("the body names none", "orders.get", ..., None),
        case("the same", "orders.get", "orders.get", None),
        case("the same with its prefix", "orders.get", "mcp.tool:orders.get", None),
        case("the route's with its prefix", "mcp.tool:orders.get", "orders.get", None),
        case("another", "orders.get", "orders.add", "must be the tool in the route"),
        case("no text", "orders.get", None, "must be the tool in the route"),
    ],
)
def test_a_route_names_the_tool_and_the_body_names_no_other(
    rest: Rest, route: str, given: Any, flaw: str | None
) -> None:
    body = {name: value for name, value in {**BODY, "tool_id": given}.items() if value is not ...}
    call = rest.read(body, ARRIVAL, route).call
    if flaw is None:
        assert (call.flaw, call.tool) == (None, "orders.get")
    else:
        assert flaw_of(call) == [("/tool_id", flaw)]


def test_a_question_and_an_operators_decision_are_calls_too(rest: Rest) -> None:
    async def act() -> Any:
        return None

    def handler(caller: Caller) -> Any:
        return caller.name

    arrival = Arrival("http", "/tools", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    question = rest.question("tools", arrival, handler)
    assert (question.call.method, question.call.tool) == ("tools", None)
    assert (question.handler, question.act) == (handler, None)
    decision = rest.decision("approvals.decide", arrival, act, "ticket-1", "approve")
    assert (decision.call.method, decision.handler, decision.act) == ("approvals.decide", None, act)
    assert (decision.call.approval, decision.call.operator_says) == ("ticket-1", "approve")
    assert question.call.trace == decision.call.trace == TRACE


# --- writing


IDENTITY = Identity("request-1", "trace-1", "span-1")


def written(outcome: Outcome, *, is_redacted: bool = False, approval: str | None = None) -> tuple[Any, int]:
    answer = rest_answer(Completed(outcome, IDENTITY, 1.25, is_redacted, approval))
    assert answer.body is not None
    return json.loads(answer.body), answer.status


METADATA = {
    "latency_ms": 1.25,
    "status_code": 200,
    "request_id": "request-1",
    "trace_id": "trace-1",
    "redaction_applied": False,
}


@pytest.mark.covers("002.execute.answer")
def test_a_success_has_a_result_and_no_error() -> None:
    answer, status = written(Done(b'{"id":"7"}'))
    assert status == 200
    assert answer == {"status": "success", "result": {"id": "7"}, "error": None, "metadata": METADATA}
    assert list(answer) == ["status", "result", "error", "metadata"]


def test_a_result_goes_out_byte_for_byte() -> None:
    body = rest_answer(Completed(Done(b'{"n":1.0}'), IDENTITY, 1.0, False, None)).body
    assert body is not None
    assert body.startswith(b'{"status":"success","result":{"n":1.0},"error":null,"metadata":{')


def test_metadata_tells_of_redaction_and_of_the_approval_where_there_was_one() -> None:
    answer, _ = written(Done(b"1"), is_redacted=True, approval="ticket-1")
    assert answer["metadata"] == {**METADATA, "redaction_applied": True, "approval_id": "ticket-1"}


@pytest.mark.covers("002.error.object")
@pytest.mark.parametrize("kind", [Refused, Failed])
@pytest.mark.parametrize("reason", list(Reason))
def test_every_ending_has_the_same_five_members_and_the_status_of_its_reason(
    kind: type[Ending], reason: Reason
) -> None:
    ending: Any = kind(reason, note=CANARY)
    row = REASONS[reason]
    answer, status = written(ending)
    assert list(answer) == ["status", "result", "error", "metadata"]
    assert (answer["status"], answer["result"]) == ("failure", None)
    assert status == answer["metadata"]["status_code"] == row.http
    assert answer["error"] == {
        "code": row.rest,
        "message": ending.sentence,
        "details": {"reason": reason.value},
        "retryable": row.is_retryable,
        "policy_violation": row.rest == "POLICY_VIOLATION",
    }
    assert list(answer["error"]) == ["code", "message", "details", "retryable", "policy_violation"]
    assert CANARY not in json.dumps(answer)


@pytest.mark.covers("002.error.policy-violation")
@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.POLICY_VIOLATION, True),
        (Reason.PAYLOAD_TOO_LARGE, True),
        (Reason.FRAME_TOO_LARGE, True),
        (Reason.APPROVAL_REFUSED, True),
        (Reason.APPROVAL_REQUIRED, False),
        (Reason.RATE_LIMITED, False),
        (Reason.UNAUTHORIZED, False),
        (Reason.BAD_ARGUMENTS, False),
        (Reason.UPSTREAM_ERROR, False),
    ],
)
def test_a_violation_of_policy_is_marked_and_nothing_else_is(reason: Reason, expected: bool) -> None:
    assert error_of(Refused(reason))["policy_violation"] is expected


def test_an_error_tells_its_details_and_whether_to_try_again() -> None:
    error = error_of(Failed(Reason.UPSTREAM_ERROR, details={"upstream_status": 503}, is_retryable=True))
    assert error["details"] == {"reason": "UPSTREAM_ERROR", "upstream_status": 503}
    assert error["retryable"] is True
    assert error_of(Failed(Reason.UPSTREAM_ERROR))["retryable"] is False


@pytest.mark.parametrize("reason", list(Reason))
def test_violations_are_told_to_who_can_mend_them_and_kept_where_a_tool_broke_its_promise(
    reason: Reason,
) -> None:
    details: Any = error_of(Refused(reason, (Finding("/id", "expected string", "type", ""),)))["details"]
    assert ("violations" in details) is REASONS[reason].stage.is_senders_fault
    if "violations" in details:
        assert [each["pointer"] for each in details["violations"]] == ["/id"]


# --- the list of tools


def tool_of(operation: HttpOperation | None = None) -> Tool:
    spec = ToolSpec(
        "orders.get", "One order.", {"type": "object"}, True, Effect.READ, operation=operation, timeout_ms=50
    )
    found = Catalog([spec]).find("orders.get")
    assert found is not None
    return found


OPERATION = HttpOperation("orders", "http://127.0.0.1:9000", "GET", "/orders/{id}")


def policy(**limits: Any) -> Any:
    return read_policy(Limits(**limits), [], ["http://127.0.0.1:9000"], lambda _: "")


@pytest.mark.covers("002.tools.described")
def test_a_tool_is_listed_with_all_that_a_caller_needs() -> None:
    assert described(tool_of(OPERATION), policy()) == {
        "tool_id": "mcp.tool:orders.get",
        "name": "orders.get",
        "description": "One order.",
        "effect": "read",
        "args_schema": {"type": "object"},
        "result_schema": True,
        "allowed_methods": ["GET"],
        "allowed_domains": ["127.0.0.1:9000"],
        "timeout_ms": 50,
    }


@pytest.mark.parametrize(
    ("limits", "methods", "domains"),
    [
        case("nothing limited", {}, ["GET"], ["127.0.0.1:9000"]),
        case("another verb listed", {"allowed_methods": ("POST",)}, [], ["127.0.0.1:9000"]),
        case("its verb listed", {"allowed_methods": ("POST", "get")}, ["GET"], ["127.0.0.1:9000"]),
        case("another domain listed", {"allowed_domains": ("api.example",)}, ["GET"], []),
    ],
)
def test_a_tool_is_listed_with_the_methods_and_domains_that_policy_leaves_it(
    limits: dict[str, Any], methods: list[str], domains: list[str]
) -> None:
    shown = described(tool_of(OPERATION), policy(**limits))
    assert (shown["allowed_methods"], shown["allowed_domains"]) == (methods, domains)


def test_a_function_has_neither_methods_nor_domains() -> None:
    shown = described(tool_of(), policy(allowed_methods=("GET",), allowed_domains=("api.example",)))
    assert (shown["allowed_methods"], shown["allowed_domains"]) == ([], [])
