"""The record of a call, in its envelope view. Pure: no I/O.

One record for every ending, refusals included. Without `ts`, `traceId`, `spanId`, `requestId`, `durationMs`,
`transport` and `route` it is the same whichever door the call came through. It holds no argument, no result
and nobody's exception text.
"""

from __future__ import annotations

from typing import Any, Final

from portbook.clock import Identity
from portbook.errors import Ending, Failed
from portbook.model import Call, Done, JSONObject, Outcome
from portbook.tools.spec import TOOL_PREFIX

__all__ = ["envelope_view"]

# More than an answer carries; still a bound on what one call can write.
_MAX_VIOLATIONS: Final = 100


def envelope_view(
    call: Call, outcome: Outcome, identity: Identity, *, ts: str, duration_ms: float, deterministic: bool
) -> JSONObject:
    """Return the record of one call."""
    context = call.context
    done = isinstance(outcome, Done)
    return {
        "ts": ts,
        "agentId": context.agent_id,
        "taskId": context.task_id,
        "stepId": context.step_id,
        "transport": call.arrival.transport,
        "route": call.arrival.route,
        "method": call.method,
        "requestId": identity.request,
        "traceId": identity.trace,
        "spanId": identity.span,
        "status": "ok" if done else "error",
        "durationMs": duration_ms,
        "attempt": context.attempt,
        "inputBytes": call.input_bytes,
        "outputBytes": len(outcome.body) if done else 0,
        "metadata": {
            "schemaVersion": call.contract,
            "deterministic": deterministic,
            "toolId": None if call.tool is None else TOOL_PREFIX + call.tool,
            "promptId": context.prompt_id,
        },
        "error": None if done else _error(outcome),
    }


def _error(ending: Ending) -> JSONObject:
    row = ending.row
    violations: list[Any] = [
        {
            "pointer": finding.pointer,
            "schemaPointer": finding.schema_pointer,
            "keyword": finding.keyword,
            "message": finding.message,
        }
        for finding in ending.findings[:_MAX_VIOLATIONS]
    ]
    return {
        "code": row.canonical,
        "reason": ending.reason.value,
        "stage": row.stage.value,
        "executed": isinstance(ending, Failed),
        "note": ending.note,
        "violations": violations,
    }
