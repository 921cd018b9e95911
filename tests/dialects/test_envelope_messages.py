"""The envelope contract: what it recognises, accepts, reads and answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook import SchemaRegistry
from portbook.dialects.dialect_choice import DialectName, choose_dialect
from portbook.dialects.envelope_messages import METHOD, Envelope
from portbook.errors import REASONS, CanonicalError, Failed, Finding, Reason, Refused
from portbook.model import Arrival, CallerContext, Done, Outcome
from portbook.wire.jsonrpc import read_id
from portbook.wire.parsing import parse

SCHEMA = SchemaRegistry().load_envelope()
ENVELOPE = Envelope(SCHEMA, SchemaRegistry().load("mcp.request.v0.1"))
ARRIVAL = Arrival("test", "test")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def message(**changes: Any) -> dict[str, Any]:
    """A good message with members changed; those that are `...` are taken out."""
    good = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "mcp.tool.invoke",
        "params": {"tool": "mcp.tool:docs.search", "input": {"query": "x"}},
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not ...}


def with_params(**changes: Any) -> dict[str, Any]:
    params = {**message()["params"], **changes}
    return message(params={name: value for name, value in params.items() if value is not ...})


def read(document: Any, arrival: Arrival = ARRIVAL) -> Any:
    """What is read of a message that came as these bytes."""
    frame = json.dumps(document).encode()
    parsed: Any = parse(frame)
    return ENVELOPE.read(parsed, read_id(parsed, frame), arrival).call


# ----------------------------------------------------------------------------------------------- the schema


@pytest.mark.parametrize(
    "document",
    [
        case("a call", message()),
        case("an id of letters", message(id="a")),
        case("an id of a space", message(id=" ")),
        case("an id of zero", message(id=0)),
        case("a negative id", message(id=-1)),
        case("an id of any size", message(id=2**200)),
        case("an integer with a point", message(id=1.0)),
        case("another method", message(method="mcp.anything")),
        case("an empty input", with_params(input={})),
        case("any input", with_params(input={"a": [None, {"b": 1.5}]})),
        case("_meta", with_params(_meta={"traceparent": TRACEPARENT, "anything": 1})),
        case("an empty context", with_params(context={})),
        case("a context", with_params(context={"agentId": "a", "taskId": "b", "stepId": 3, "attempt": 1})),
        case("a context that leaves out", with_params(context={"agentId": None, "promptId": None})),
        case("a step by name", with_params(context={"stepId": "plan"})),
        case("a step of zero", with_params(context={"stepId": 0})),
        case("more in the context", with_params(context={"mood": "good"})),
        case("more in the params", with_params(anything=[1], dryRun=True)),
        case("a short tool", with_params(tool="mcp.tool:a")),
        case("a tool of every letter", with_params(tool="mcp.tool:abc_0.9._")),
        case("the longest tool", with_params(tool="mcp.tool:" + "a" * 128)),
    ],
)
def test_the_envelope_accepts(document: Any) -> None:
    assert SCHEMA.findings(document) == ()


def refused(name: str, pointer: str, keyword: str, document: Any) -> Any:
    return pytest.param(document, pointer, keyword, id=name[:60])


def of_type(pointer: str, make: Any, *values: Any) -> list[Any]:
    """One row for each value that is of the wrong type there."""
    return [refused(f"{pointer} = {value!r}", pointer, "type", make(value)) for value in values]


NOT_THE_VERSION = ("1.0", "2", "2.0 ", "", 2.0, 2, None)
NOT_TOOLS = (
    "", "docs.search", "mcp.tool:", "mcp.tool:Docs", "mcp.tool:a-b", "mcp.tool:a b", "mcp.tool:a/b",
    "mcp.tool:a\n", "\nmcp.tool:a", " mcp.tool:a", "x mcp.tool:a", "mcpXtool:a", "MCP.TOOL:a", "mcp.tool:é",
    "mcp.tool:\u0663", "mcp.tool:mcp.tool:a",
)  # fmt: skip
LONG = "a" * 257
CONTEXT = "/params/context"


def in_context(**given: Any) -> Any:
    return with_params(context=given)


@pytest.mark.parametrize(
    ("document", "pointer", "keyword"),
    [
        *of_type("", lambda value: value, [], None, "x", 5),
        *(refused(f"no {name}", "", "required", message(**{name: ...})) for name in message()),
        refused("something else", "", "additionalProperties", message(extra=1)),
        refused("a result", "", "additionalProperties", message(result={})),
        *of_type("/id", lambda value: message(id=value), None, True, [], {}, 1.5),
        refused("an empty id", "/id", "minLength", message(id="")),
        *(
            refused(f"jsonrpc {value!r}", "/jsonrpc", "const", message(jsonrpc=value))
            for value in NOT_THE_VERSION
        ),
        *of_type("/method", lambda value: message(method=value), 5, None, [], {}),
        refused("an empty method", "/method", "minLength", message(method="")),
        *of_type("/params", lambda value: message(params=value), [], "x", None, 5, True),
        refused("no tool", "/params", "required", with_params(tool=...)),
        refused("no input", "/params", "required", with_params(input=...)),
        *of_type("/params/tool", lambda value: with_params(tool=value), 5, None, [], {}),
        *(
            refused(f"tool {value!r}", "/params/tool", "pattern", with_params(tool=value))
            for value in NOT_TOOLS
        ),
        refused("too long", "/params/tool", "maxLength", with_params(tool="mcp.tool:" + "a" * 129)),
        *of_type("/params/input", lambda value: with_params(input=value), [], "x", None, 5, True),
        *of_type("/params/_meta", lambda value: with_params(_meta=value), [], "x", None),
        *of_type("/params/context", lambda value: with_params(context=value), [], "x", None),
        refused("an empty agent", f"{CONTEXT}/agentId", "minLength", in_context(agentId="")),
        refused("a long agent", f"{CONTEXT}/agentId", "maxLength", in_context(agentId=LONG)),
        refused("a long task", f"{CONTEXT}/taskId", "maxLength", in_context(taskId=LONG)),
        refused("a prompt of another type", f"{CONTEXT}/promptId", "type", in_context(promptId=5)),
        refused("a negative step", f"{CONTEXT}/stepId", "minimum", in_context(stepId=-1)),
        refused("half a step", f"{CONTEXT}/stepId", "type", in_context(stepId=1.5)),
        refused("no attempt", f"{CONTEXT}/attempt", "minimum", in_context(attempt=0)),
    ],
)
def test_the_envelope_refuses(document: Any, pointer: str, keyword: str) -> None:
    assert [(finding.pointer, finding.keyword) for finding in SCHEMA.findings(document)] == [
        (pointer, keyword)
    ]
    assert not SCHEMA.is_valid(document)


# ------------------------------------------------------------------------------------------- recognising


@pytest.mark.parametrize(
    ("document", "is_ours"),
    [
        case("a call", message(), True),
        case("a method of ours", {"method": "mcp.tool.invoke"}, True),
        case("any method that starts like ours", {"method": "mcp."}, True),
        case("a tool of ours without a method", {"params": {"tool": "mcp.tool:a"}}, True),
        case("a tool of ours with another method", {"method": "x", "params": {"tool": "mcp.tool:"}}, True),
        case("nothing", {}, False),
        case("another method", {"method": "tools/call", "params": {"name": "a"}}, False),
        case("a method that only looks like ours", {"method": "mcp/tool"}, False),
        case("a method that is none", {"method": 5}, False),
        case("a tool without its prefix", {"params": {"tool": "a"}}, False),
        case("a tool that is none", {"params": {"tool": 5}}, False),
        case("params that are none", {"params": ["mcp.tool:a"]}, False),
    ],
)
def test_a_message_is_recognised_however_broken_it_is(document: Any, is_ours: bool) -> None:
    assert (choose_dialect(document, frozenset()) is DialectName.ENVELOPE) is is_ours


# ---------------------------------------------------------------------------------------------- reading


def test_a_good_message_is_read_into_a_call_without_a_flaw() -> None:
    call = read(message())
    assert call.flaw is None
    assert (call.method, call.tool, call.arguments) == (METHOD, "docs.search", {"query": "x"})
    assert (call.arrival, call.context, call.trace) == (ARRIVAL, CallerContext(), None)
    assert call.input_bytes == len('{"query":"x"}')


def test_the_content_of_a_call_is_the_message_without_its_id() -> None:
    assert read(message(id=1)).content == read(message(id="two")).content
    assert read(message()).content != read(with_params(input={})).content
    assert read(message()).content != read(with_params(_meta={})).content


@pytest.mark.parametrize(
    "document",
    [
        case("no method", message(method=...)),
        case("no object", message(params=[])),
        case("no tool", with_params(tool=...)),
        case("a tool that is none", with_params(tool="mcp.tool:A")),
        case("an input that is none", with_params(input=[])),
        case("no id", message(id=...)),
        case("something else", message(extra=1)),
        case("a context that is none", with_params(context={"stepId": -1})),
    ],
)
def test_a_broken_message_is_read_into_a_call_with_its_flaw(document: Any) -> None:
    flaw = read(document).flaw
    assert isinstance(flaw, Refused)
    assert flaw.reason is Reason.BAD_ENVELOPE
    assert flaw.findings == SCHEMA.findings(document)


@pytest.mark.parametrize("method", ["mcp.tool.invoked", "mcp.tool", "mcp.", "tools/call", "MCP.TOOL.INVOKE"])
def test_another_method_than_the_one_is_a_flaw(method: str) -> None:
    assert read(message(method=method)).flaw.findings == (
        Finding("/method", 'must be "mcp.tool.invoke"', "envelope", ""),
    )


def test_an_id_too_long_to_be_echoed_is_a_flaw() -> None:
    (finding,) = read(message(id="x" * 300)).flaw.findings
    assert (finding.pointer, finding.keyword) == ("/id", "envelope")
    assert "x" * 10 not in finding.message


@pytest.mark.parametrize(
    ("document", "method", "tool", "arguments", "input_bytes"),
    [
        case("no params", message(params=...), METHOD, None, {}, 0),
        case("params that are none", message(params=[1]), METHOD, None, {}, 0),
        case("no input", with_params(input=...), METHOD, "docs.search", {}, 0),
        case("an input that is none", with_params(input=[1, 2]), METHOD, "docs.search", {}, 5),
        case("a tool without its prefix", with_params(tool="canary"), METHOD, None, {"query": "x"}, 13),
        case(
            "a tool that cannot be one",
            with_params(tool="mcp.tool:Canary!"),
            METHOD,
            None,
            {"query": "x"},
            13,
        ),
        case("a method that is none", message(method=["canary"]), None, "docs.search", {"query": "x"}, 13),
        case(
            "a method too long", message(method="mcp." + "x" * 125), None, "docs.search", {"query": "x"}, 13
        ),
    ],
)
def test_of_a_broken_message_the_record_has_what_can_be_used(
    document: Any, method: str | None, tool: str | None, arguments: Any, input_bytes: int
) -> None:
    call = read(document)
    assert (call.method, call.tool, call.arguments, call.input_bytes) == (
        method,
        tool,
        arguments,
        input_bytes,
    )
    assert call.flaw is not None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        case("nothing", {}, CallerContext(None, None, 1, 1, None)),
        case(
            "everything",
            {"agentId": "a", "taskId": "t", "stepId": 7, "attempt": 2, "promptId": "p"},
            CallerContext("a", "t", 7, 2, "p"),
        ),
        case("a step of zero", {"stepId": 0}, CallerContext(step_id=0)),
        case("a step by name", {"stepId": "plan"}, CallerContext(step_id="plan")),
        case("a step with a point", {"stepId": 3.0, "attempt": 2.0}, CallerContext(step_id=3, attempt=2)),
        case("a large step", {"stepId": 2**53 - 1}, CallerContext(step_id=2**53 - 1)),
        case("null", {"agentId": None}, CallerContext()),
        case(
            "of another type", {"agentId": 5, "taskId": [], "stepId": True, "attempt": "2"}, CallerContext()
        ),
        case("too large", {"stepId": 2**53, "attempt": 2**53}, CallerContext()),
        case("negative", {"stepId": -1, "attempt": -1}, CallerContext()),
        case("no attempt", {"attempt": 0}, CallerContext()),
        case("empty", {"agentId": "", "stepId": ""}, CallerContext()),
        case("too long", {"agentId": "a" * 257, "stepId": "s" * 257}, CallerContext()),
        case("as long as may be", {"agentId": "a" * 256}, CallerContext(agent_id="a" * 256)),
        case("half a step", {"stepId": 1.5}, CallerContext()),
        case("beyond a double's integers", {"stepId": 1e300}, CallerContext()),
    ],
)
def test_what_the_caller_says_of_itself_is_kept_as_far_as_it_can_be(
    given: Any, expected: CallerContext
) -> None:
    found = read(with_params(context=given)).context
    assert found == expected
    assert type(found.step_id) is type(expected.step_id)


@pytest.mark.parametrize("given", [None, "x", [], 5])
def test_a_context_that_is_none_says_nothing(given: Any) -> None:
    assert read(with_params(context=given)).context == CallerContext()


OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("meta", "header", "trace"),
    [
        case("none", ..., None, None),
        case("in the message", {"traceparent": TRACEPARENT}, None, TRACE),
        case("in the header", ..., TRACEPARENT, TRACE),
        case("the message is nearer", {"traceparent": TRACEPARENT}, OTHER, TRACE),
        case("a broken one in the message", {"traceparent": "broken"}, TRACEPARENT, TRACE),
        case("one that is none", {"traceparent": 5}, None, None),
        case("_meta that is none", [TRACEPARENT], TRACEPARENT, TRACE),
        case("a broken header", ..., "broken", None),
    ],
)
def test_the_trace_is_the_senders(meta: Any, header: str | None, trace: str | None) -> None:
    assert read(with_params(_meta=meta), Arrival("test", "test", traceparent=header)).trace == trace


# ---------------------------------------------------------------------------------------------- answering


def answer(outcome: Outcome, token: bytes = b"1") -> tuple[Any, int]:
    body, status = ENVELOPE.write(outcome, token)
    return json.loads(body), status


def test_a_result_is_answered_as_it_is() -> None:
    body, status = ENVELOPE.write(Done(b'{"b":1,"a":1.0}'), b'"x"')
    assert (body, status) == (b'{"jsonrpc":"2.0","id":"x","result":{"b":1,"a":1.0}}', 200)


@pytest.mark.parametrize(
    "token", [b"1", b"1.0", b"-0", b"1e2", b'"a\\u0062"', b"null", b"12345678901234567890123"]
)
def test_the_id_is_echoed_token_for_token(token: bytes) -> None:
    for outcome in (Done(b"1"), Refused(Reason.UNKNOWN_TOOL)):
        body, _ = ENVELOPE.write(outcome, token)
        assert body.startswith(b'{"jsonrpc":"2.0","id":' + token + b",")


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_answered_with_its_canonical_error(reason: Reason) -> None:
    row = REASONS[reason]
    found, status = answer(Refused(reason, note="canary"))
    assert status == row.http
    expected: Any = CanonicalError.to_jsonrpc_error(row.canonical.code)
    if row.canonical.reason:
        expected["data"]["reason"] = row.canonical.reason
    if row.canonical.code == "INVALID_INPUT":
        expected["data"]["violations"] = []
    if row.stage in ("decide", "approve"):
        expected["data"]["retryable"] = row.is_retryable
        expected["data"]["policy_violation"] = row.rest == "POLICY_VIOLATION"
    assert found == {"jsonrpc": "2.0", "id": 1, "error": expected}


FINDING = Finding("/a", "expected string", "type", "/properties/a/type")


def test_the_caller_is_told_what_it_can_mend() -> None:
    found, _ = answer(Refused(Reason.BAD_ARGUMENTS, (FINDING,)))
    assert found["error"]["data"]["violations"] == [
        {
            "pointer": "/a",
            "schema_pointer": "/properties/a/type",
            "keyword": "type",
            "message": "expected string",
        }
    ]


def test_what_only_the_tools_author_can_mend_stays_in_the_record() -> None:
    found, status = answer(Failed(Reason.BAD_RESULT, (FINDING,), note="canary"))
    assert found["error"] == CanonicalError.to_jsonrpc_error("INVALID_OUTPUT")
    assert status == 502


def test_an_answer_lists_a_few_violations_of_many() -> None:
    findings = tuple(Finding(f"/{number:04}", "", "", "") for number in range(1000))
    found, _ = answer(Refused(Reason.BAD_ENVELOPE, findings))
    pointers = [violation["pointer"] for violation in found["error"]["data"]["violations"]]
    assert pointers == [f"/{number:04}" for number in range(20)]


def test_an_answer_does_not_spoil_the_next() -> None:
    first = answer(Refused(Reason.BAD_ARGUMENTS, (FINDING,)))
    answer(Refused(Reason.FRAME_TOO_LARGE))
    assert answer(Refused(Reason.BAD_ARGUMENTS, (FINDING,))) == first
