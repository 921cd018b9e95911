"""Every route that operators use, described once, for `/operator/openapi.json` and `/docs`. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from portbook.access.approval_state_and_binding import DECISIONS, State
from portbook.audit.call_filter import FILTERS
from portbook.doors.http.operator.call_routes import CALLS, FIGURES
from portbook.doors.http.operator.event_route import EVENTS
from portbook.doors.http.operator.pin_routes import PINS, REVIEW
from portbook.doors.http.operator.policy_routes import EXPLAIN, POLICY, QUESTION, REPLAY, TRIAL
from portbook.doors.http.operator.proof_route import PROOF
from portbook.doors.http.operator.upstream_routes import RESTART, UPSTREAMS
from portbook.doors.http.operator.waiting_route import WAITING
from portbook.model import JSON, JSONObject

__all__ = ["OPERATIONS", "OperatorOperation"]

_APPROVALS: Final = "/approvals"
_DECISION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"decision": {"enum": [*DECISIONS]}, "reason": {"type": "string", "maxLength": 1000}},
    "required": ["decision"],
    "additionalProperties": False,
}
# An example for each filter; without one, any text will do.
_FILTERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(FILTERS, ""),
    "tool": "files.*",
    "rule": "default",
    "status": "refused",
    "since": "2026-01-31T09:30:00Z",
}


class OperatorOperation(NamedTuple):
    """One method at one path."""

    method: str
    path: str
    name: str
    summary: str
    query: Mapping[str, str] = {}
    """The parameters of the query, each with an example, or an empty text."""
    body: JSONObject | None = None
    example: JSON = None
    """A body that could be sent."""
    is_stream: bool = False


OPERATIONS: Final[tuple[OperatorOperation, ...]] = (
    OperatorOperation(
        "get", WAITING, "listWaiting", "Calls that wait for approval, the oldest first.", {"id": ""}
    ),
    OperatorOperation(
        "get", _APPROVALS, "listApprovals", "The newest approvals.", {"state": State.PENDING.value}
    ),
    OperatorOperation("get", f"{_APPROVALS}/{{id}}", "showApproval", "One approval."),
    OperatorOperation(
        "post",
        f"{_APPROVALS}/{{id}}",
        "decideApproval",
        "Approve or deny a call.",
        body=_DECISION,
        example={"decision": "approve", "reason": "as agreed"},
    ),
    OperatorOperation(
        "get", CALLS, "listCalls", "Recorded calls, the newest first.",
        {**_FILTERS, "limit": "100", "before": ""},
    ),
    OperatorOperation("get", f"{CALLS}/{{id}}", "showCall", "Every record of one call."),
    OperatorOperation(
        "get", FIGURES, "countCalls", "Calls, refusals, failures and latencies over time.",
        {**_FILTERS, "buckets": "60", "fit": "1"},
    ),
    OperatorOperation("get", EVENTS, "followCalls", "Calls and waits as they come.", is_stream=True),
    OperatorOperation("get", PROOF, "proveLog", "Whether the log is whole."),
    OperatorOperation("get", UPSTREAMS, "listUpstreams", "How the MCP servers are doing."),
    OperatorOperation(
        "post",
        f"{UPSTREAMS}/{{name}}",
        "restartUpstream",
        "Restart an MCP server.",
        body=RESTART,
        example={"action": "restart"},
    ),
    OperatorOperation(
        "get", PINS, "listPins", "Withheld definitions beside the approved ones.", {"server": ""}
    ),
    OperatorOperation(
        "post",
        f"{PINS}/{{name}}",
        "decideOnPins",
        "Approve definitions of an MCP server as they were shown, or keep them withheld.",
        body=REVIEW,
        example={
            "decision": "approve",
            "definitions": [{"kind": "tool", "name": "send", "digest": "as shown"}],
            "force": False,
        },
    ),
    OperatorOperation("get", POLICY, "showPolicy", "The rules and limits in force, with their place."),
    OperatorOperation(
        "post",
        EXPLAIN,
        "explainCall",
        "How policy decides a call, without running it.",
        body=QUESTION,
        example={"tool": "docs.search", "args": {"query": "policy"}, "caller": "anonymous"},
    ),
    OperatorOperation(
        "post",
        REPLAY,
        "replayCalls",
        "What a changed policy would have decided on recorded calls.",
        body=TRIAL,
        example={"policy": '[policy]\ndefault = "deny"\n'},
    ),
)  # fmt: skip
