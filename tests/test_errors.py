"""The table of reasons: complete, consistent, and in it exactly the five codes of the envelope contract."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from portbook.errors import REASONS, CanonicalError, Ending, Failed, Finding, Reason, Refused, Row, Stage
from portbook.schema.official_schema_digests import PINS

# The table of the envelope specification, as it stands there.
CONTRACT = {
    "INVALID_INPUT": (400, -32602, "Invalid params"),
    "INVALID_OUTPUT": (502, -32002, "Invalid tool output"),
    "NOT_FOUND": (404, -32004, "Resource not found"),
    "UNAUTHORIZED": (401, -32001, "Unauthorized"),
    "INTERNAL_ERROR": (500, -32603, "Internal error"),
}

# JSON-RPC 2.0, section 5.1: these numbers have these words.
JSONRPC_WORDS = {-32700: "Parse error", -32600: "Invalid Request", -32601: "Method not found"}

# Those of JSON-RPC and of MCP; a number of our own lies beyond what both reserve, and ends like the status.
JSONRPC_NUMBERS = {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022}

# Of `portbook call`: the kind of error tells the exit status, whatever the reason.
EXITS = {"INTERNAL_ERROR": 1, "INVALID_INPUT": 2, "UNAUTHORIZED": 3, "NOT_FOUND": 4, "INVALID_OUTPUT": 5}

# The one number of our own that the design fixes by itself, for clients to know it by.
FIXED_NUMBERS = {Reason.APPROVAL_REQUIRED: -31428}

# Of `POST /execute`: the code of each reason; several reasons share one where a client would do the same.
REST = {
    "POLICY_VIOLATION": {
        *("FRAME_TOO_LARGE", "POLICY_VIOLATION", "PAYLOAD_TOO_LARGE", "APPROVAL_DENIED", "APPROVAL_REFUSED"),
        *("NOT_REDACTABLE", "TOOL_WITHHELD", "TOOL_QUARANTINED"),
    },
    "APPROVAL_REQUIRED": {"APPROVAL_REQUIRED"},
    "RATE_LIMITED": {"RATE_LIMITED"},
    "UPSTREAM_ERROR": {"UPSTREAM_ERROR", "UPSTREAM_DENIED", "UPSTREAM_REJECTED"},
    "TIMEOUT": {"TIMEOUT"},
    "TOOL_ERROR": {"TOOL_ERROR"},
    "BUSY": {"BUSY", "TOO_MANY_IN_FLIGHT", "TOO_MANY_STREAMS"},
}

# What only an operator who decides is told: no such approval, and too late for that.
OPERATORS_STATUSES = {404, 409}

# What may end better another time without anything being changed.
RETRYABLE = {
    *("FRAME_TOO_SLOW", "TOO_MANY_IN_FLIGHT", "TOO_MANY_STREAMS", "RATE_LIMITED", "APPROVAL_REQUIRED"),
    *("STORE_UNUSABLE", "BUSY", "TIMEOUT"),
}

# The reasons whose row leaves a column at its default, and why that is meant.
# The canonical code says all there is to say in an envelope.
CODE_SAYS_ENOUGH = {"UNAUTHORIZED", "UNKNOWN_TOOL", "TOOL_FAILED", "BAD_RESULT", "INTERNAL"}
# The message is no request that the asset contract could answer with a result.
NO_REQUEST_AT_ALL = {
    *(
        "FRAME_TOO_SLOW",
        "NOT_JSON_CONTENT",
        "NOT_ACCEPTABLE",
        "BAD_HOST",
        "REPEATED_HEADER",
        "FOREIGN_HOST",
        "WRONG_HTTP_METHOD",
        "UNKNOWN_SESSION",
        "NOT_JSON",
    ),
    *("NOT_JSONRPC", "IGNORED", "ID_IN_USE", "UNSUPPORTED_REVISION", "HEADER_MISMATCH"),
}
# A model could do nothing about it: the client, the operator or the author of the tool has to.
NEVER_TOLD_TO_MODEL = {
    *NO_REQUEST_AT_ALL,
    *("FRAME_TOO_LARGE", "UNKNOWN_METHOD", "BAD_PARAMS", "BAD_ENVELOPE", "UNAUTHORIZED", "UNKNOWN_TOOL"),
    *("UNKNOWN_RESOURCE", "UNKNOWN_PROMPT", "UNKNOWN_TASK", "MISSING_CAPABILITY", "APPROVAL_UNKNOWN"),
    *(
        "APPROVAL_SETTLED",
        "RECORD_UNKNOWN",
        "UPSTREAM_UNKNOWN",
        "REVIEW_OUTDATED",
        "REVIEW_BLOCKED",
        "BAD_RESULT",
        "CANCELLED",
        "OUTCOME_UNKNOWN",
        "NOT_RECORDED",
        "INTERNAL",
    ),
}
# A call that ended so may have run or not, and only one that ran can have had effects.
SPEAKS_OF_EFFECTS = {"TIMEOUT", "UPSTREAM_ERROR", "CANCELLED"}
# MCP itself changed the code with a revision.
RENUMBERED = {"UNKNOWN_RESOURCE"}

every_reason = pytest.mark.parametrize("reason", list(Reason))
every_code = pytest.mark.parametrize("code", list(CONTRACT))


def test_every_reason_has_one_row_and_every_row_a_reason() -> None:
    assert list(REASONS) == list(Reason)
    assert [reason.value for reason in Reason] == [reason.name for reason in Reason]


@every_reason
def test_every_column_of_a_row_is_filled(reason: Reason) -> None:
    row = REASONS[reason]
    # The asset specification's reasons are a closed set; what is no request at all has none of them.
    if row.bare is None:
        assert row.stage in (Stage.FRAME, Stage.PARSE, Stage.CLASSIFY)
    else:
        assert row.bare.reason in ("validation_failed", "backend_error", "unsupported")
        assert row.bare.detail
    assert isinstance(row.stage, Stage)
    # What happened, then what to do about it.
    assert re.fullmatch(r"[A-Z][^{}]{20,}\. [A-Z][^{}]+\.", row.sentence)
    assert row.canonical.code in CONTRACT
    assert re.fullmatch(r"([A-Z]+(_[A-Z]+)*)?", row.canonical.reason)
    assert row.mcp.code in JSONRPC_NUMBERS or row.mcp.code == FIXED_NUMBERS.get(reason, -31000 - row.http)
    assert row.mcp.message
    assert row.to_model_since in ("", *PINS)
    assert row.rest
    assert 400 <= row.http <= 599
    assert row.exit == EXITS[row.canonical.code]
    assert type(row.is_retryable) is bool


def test_a_default_is_relied_on_only_where_it_is_meant() -> None:
    assert set(Row._field_defaults) == {
        *("if_not_executed", "if_effects", "to_model_since", "bare", "bare_if_unanswered", "is_retryable")
    }
    assert _those(lambda row: "effects" in row.sentence) == SPEAKS_OF_EFFECTS
    assert _those(lambda row: bool(row.if_not_executed)) == SPEAKS_OF_EFFECTS
    assert _those(lambda row: row.bare_if_unanswered is not None) == {"UPSTREAM_ERROR"}
    assert _those(lambda row: not row.canonical.reason) == CODE_SAYS_ENOUGH
    assert _those(lambda row: not row.to_model_since) == NEVER_TOLD_TO_MODEL
    assert _those(lambda row: row.bare is None) == NO_REQUEST_AT_ALL
    assert _those(lambda row: row.mcp.before is not None) == RENUMBERED


def _those(is_one: Callable[[Row], bool]) -> set[str]:
    return {reason.value for reason, row in REASONS.items() if is_one(row)}


@pytest.mark.covers("002.error.codes")
def test_a_rest_code_of_its_own_or_the_canonical_one_and_denials_share_one() -> None:
    found: dict[str, set[str]] = {}
    for reason, row in REASONS.items():
        found.setdefault(row.rest, set()).add(reason.value)
    assert {code: reasons for code, reasons in found.items() if code not in CONTRACT} == REST
    assert all(row.rest in (row.canonical.code, *REST) for row in REASONS.values())


@pytest.mark.covers("002.error.retryable")
def test_what_may_end_better_another_time_is_retryable_and_nothing_else() -> None:
    assert _those(lambda row: row.is_retryable) == RETRYABLE


@pytest.mark.parametrize("stage", [Stage.DECIDE, Stage.APPROVE])
def test_what_policy_or_a_person_says_of_a_call_is_told_to_the_model_in_every_revision(stage: Stage) -> None:
    rows = [row for row in REASONS.values() if row.stage is stage and row.http not in OPERATORS_STATUSES]
    assert {row.to_model_since for row in rows} == {min(PINS)}


@every_reason
def test_the_status_of_a_row_is_its_codes_unless_a_reason_says_more(reason: Reason) -> None:
    row = REASONS[reason]
    assert row.canonical.reason or row.http == CanonicalError.to_http_status(row.canonical.code)


@every_reason
def test_a_number_of_jsonrpc_has_the_words_of_jsonrpc(reason: Reason) -> None:
    error = REASONS[reason].mcp
    assert error.message == JSONRPC_WORDS.get(error.code, error.message)


def test_every_stage_is_one_in_which_something_can_end() -> None:
    assert {row.stage for row in REASONS.values()} == set(Stage)


def test_the_codes_are_those_of_the_contract_in_its_order() -> None:
    assert CanonicalError.codes() == tuple(CONTRACT)


@every_code
def test_a_code_has_the_contracts_status_number_and_message(code: str) -> None:
    error = CanonicalError.to_jsonrpc_error(code)
    assert (CanonicalError.to_http_status(code), error["code"], error["message"]) == CONTRACT[code]


@every_code
def test_an_error_object_holds_code_message_and_canonical_code_and_nothing_else(code: str) -> None:
    _, number, message = CONTRACT[code]
    error = CanonicalError.to_jsonrpc_error(code)
    assert error == {"code": number, "message": message, "data": {"canonical_code": code}}
    assert list(error) == ["code", "message", "data"]


@every_code
def test_a_changed_error_object_changes_no_other(code: str) -> None:
    _, number, message = CONTRACT[code]
    spoiled: Any = CanonicalError.to_jsonrpc_error(code)
    spoiled["data"]["canonical_code"] = "SPOILED"
    spoiled["data"]["reason"] = "SPOILED"
    spoiled["code"] = 0
    found = CanonicalError.to_jsonrpc_error(code)
    assert found == {"code": number, "message": message, "data": {"canonical_code": code}}


@pytest.mark.parametrize("ask", [CanonicalError.to_http_status, CanonicalError.to_jsonrpc_error])
@pytest.mark.parametrize(
    "code", ["", "invalid_input", "INVALID_INPUT ", "BAD_ARGUMENTS", "TIMEOUT", None, 400]
)
def test_an_unknown_code_is_a_key_error(ask: Callable[[Any], object], code: Any) -> None:
    with pytest.raises(KeyError):
        ask(code)


@pytest.mark.parametrize("kind", [Refused, Failed])
def test_an_ending_carries_its_reason_and_says_nothing_else(kind: type[Ending]) -> None:
    finding = Finding("/a", "expected string", "type", "/properties/a/type")
    ending = kind(Reason.BAD_ARGUMENTS, (finding,), note="ValueError at tools.py:3 in f")
    assert (ending.reason, ending.findings) == (Reason.BAD_ARGUMENTS, (finding,))
    assert ending.note == "ValueError at tools.py:3 in f"
    assert ending.row is REASONS[Reason.BAD_ARGUMENTS]
    assert str(ending) == "BAD_ARGUMENTS"


def test_an_ending_without_more_has_no_findings_no_note_and_no_details() -> None:
    ending = Refused(Reason.UNKNOWN_TOOL)
    assert (ending.findings, ending.note, ending.details) == ((), None, {})


@pytest.mark.parametrize("kind", [Refused, Failed])
@pytest.mark.parametrize(
    ("reason", "said", "expected"),
    [
        (Reason.TIMEOUT, None, True),
        (Reason.TIMEOUT, False, False),
        (Reason.UPSTREAM_ERROR, None, False),
        (Reason.UPSTREAM_ERROR, True, True),
    ],
)
def test_an_ending_is_retryable_as_its_reason_is_unless_its_maker_knows_better(
    kind: type[Ending], reason: Reason, said: bool | None, expected: bool
) -> None:
    assert kind(reason, is_retryable=said).is_retryable is expected


def test_the_sentence_says_what_happened_and_speaks_of_effects_only_where_there_may_be_some() -> None:
    happened = "the connection was refused"
    refused, failed = (kind(Reason.UPSTREAM_ERROR, happened=happened) for kind in (Refused, Failed))
    what = "The API or server behind the tool failed or sent an unusable answer: the connection was refused."
    assert refused.sentence == f"{what} Nothing was sent, so there were no effects."
    assert failed.sentence == f"{what} Check whether it had effects before you retry."
    for ending in (refused, failed):
        assert (ending.note, ending.details) == (happened, {"happened": happened})
    assert Failed(Reason.TIMEOUT).sentence == REASONS[Reason.TIMEOUT].sentence
    assert Refused(Reason.BUSY).sentence == REASONS[Reason.BUSY].sentence


@pytest.mark.parametrize("reason", sorted(SPEAKS_OF_EFFECTS))
def test_a_tool_that_only_reads_is_not_suspected_of_effects(reason: str) -> None:
    failed, refused = Failed(Reason(reason)), Refused(Reason(reason))
    failed.only_read = refused.only_read = True
    assert failed.sentence.endswith(". The tool only reads, so there were no effects.")
    assert refused.sentence.endswith(REASONS[Reason(reason)].if_not_executed)


def test_a_note_of_its_own_stays_in_the_record() -> None:
    ending = Refused(Reason.UPSTREAM_ERROR, note="TOKEN is not set", happened="no credential")
    assert (ending.note, ending.details) == ("TOKEN is not set", {"happened": "no credential"})


def test_details_are_kept_as_they_were_told() -> None:
    assert Failed(Reason.UPSTREAM_ERROR, details={"upstream_status": 503}).details == {"upstream_status": 503}


@pytest.mark.parametrize(
    ("stage", "expected"),
    [(stage, stage not in (Stage.EXECUTE, Stage.RESULT, Stage.RECORD)) for stage in Stage],
)
def test_the_sender_can_mend_what_is_found_before_its_tool_runs(stage: Stage, expected: bool) -> None:
    assert stage.is_senders_fault is expected


def test_refused_and_failed_are_endings_and_never_each_other() -> None:
    assert issubclass(Refused, Ending)
    assert issubclass(Failed, Ending)
    assert not issubclass(Refused, Failed)
    assert not issubclass(Failed, Refused)


def test_findings_sort_by_pointer_then_message() -> None:
    findings = [Finding("/b", "a", "k", ""), Finding("/a", "z", "a", ""), Finding("/a", "b", "z", "")]
    assert [(finding.pointer, finding.message) for finding in sorted(findings)] == [
        ("/a", "b"),
        ("/a", "z"),
        ("/b", "a"),
    ]


def test_a_finding_and_a_row_do_not_change() -> None:
    for value, name in (
        (Finding("", "", "", ""), "pointer"),
        (REASONS[Reason.INTERNAL], "http"),
    ):
        with pytest.raises(AttributeError):
            setattr(value, name, "changed")
