"""Refusals and failures in MCP: text for a model, data for programs, a status for HTTP. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.canonical import json_bytes
from portbook.errors import Ending, Reason, Stage
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions_and_methods import Revision
from portbook.wire.violations import violations

__all__ = ["META_ENVELOPE", "META_ERROR", "META_LINKS", "META_REDACTED", "status_of", "told_to_model"]

# The member of `_meta` that holds a call's result envelope.
META_ENVELOPE: Final = "portbook/envelope"

# The member of `_meta` that holds the links of an API's response: further pages, mostly.
META_LINKS: Final = "portbook/links"

# The member of `_meta` that is true where a secret was redacted in what the call gave its caller.
META_REDACTED: Final = "portbook/redacted"

# The member of `_meta` that holds an error that the tool or the API behind it states, and its members.
META_ERROR: Final = "portbook/error"
_STATED: Final = ("code", "data", "retryable")
_UPSTREAM_STATED: Final = (Reason.UPSTREAM_NOT_FOUND, Reason.UPSTREAM_DENIED, Reason.UPSTREAM_REJECTED)


def told_to_model(ending: Ending, revision: Revision) -> JSONObject:
    """Return a refusal or failure as a result: text for the model, data for programs.

    Where the tool itself says why it failed, the text is the tool's alone, and `_meta` has its code and data.
    Where the API behind it does, `_meta` has the API's status and JSON, and the JSON is a content of its own:
    data for the model, not a part of our text.
    """
    findings = ending.findings if ending.row.stage.is_senders_fault else ()
    is_stated = ending.reason is Reason.TOOL_ERROR
    own = ending.details.get("error") if is_stated or ending.reason is Reason.TOOL_FAILED else None
    kept_apart = _STATED[1:] if is_stated else ("upstream_body",)
    details = {name: value for name, value in ending.details.items() if name not in kept_apart}
    lines = (
        [str(own)]
        if own
        else [
            ending.sentence,
            *(f"{finding.pointer or '(root)'}: {finding.message}" for finding in findings[:20]),
            *(f"{name}: {value}" for name, value in details.items() if name not in ("redacted", "happened")),
        ]
    )
    refusal: JSONObject = {
        "reason": ending.reason.value,
        "violations": cast("JSON", violations(ending) if findings else []),
        "retryable": ending.is_retryable,
        "policy_violation": ending.row.rest == "POLICY_VIOLATION",
        **cast("JSONObject", details),
    }
    meta: JSONObject = {"portbook/refusal": refusal}
    if is_stated:
        stated = {name: ending.details.get(name) for name in _STATED}
        meta[META_ERROR] = cast("JSON", {**stated, "retryable": ending.is_retryable})
    elif ending.reason in _UPSTREAM_STATED:
        told = {name: value for name, value in ending.details.items() if name.startswith("upstream_")}
        stated = {"code": ending.reason.value, "data": told, "retryable": ending.is_retryable}
        meta[META_ERROR] = cast("JSON", stated)
    if ending.details.get("redacted"):
        meta[META_REDACTED] = True
    if ending.envelope is not None:
        meta[META_ENVELOPE] = cast("JSON", ending.envelope)
    if isinstance(content := details.pop("upstream_content", None), list):  # the error of a server's tool
        refusal.pop("upstream_content", None)
        return _with_type({"content": cast("JSON", content), "isError": True, "_meta": meta}, revision)
    texts = ["\n".join(lines)]
    if "upstream_body" in ending.details:
        texts.append(json_bytes(ending.details["upstream_body"]).decode())
    result: JSONObject = {
        "content": [{"type": "text", "text": text} for text in texts],
        "isError": True,
        "_meta": meta,
    }
    return _with_type(result, revision)


def _with_type(result: JSONObject, revision: Revision) -> JSONObject:
    return {**result, "resultType": "complete"} if revision.has_result_type else result


# The HTTP status of an MCP error, by revision.

# The stages before the tool is looked up.
_EARLY: Final = (Stage.FRAME, Stage.PARSE, Stage.CLASSIFY, Stage.READ)

_ALWAYS: Final = (Reason.UNAUTHORIZED, Reason.UNSUPPORTED_REVISION, Reason.HEADER_MISMATCH)


def status_of(ending: Ending, revision: Revision | None) -> int:
    """Return the HTTP status of an error.

    1. Without a valid key it is 401, in every revision, and 400 for wrong headers.
    2. An unreadable message, or one in no revision, has its reason's own status.
    3. Clients of the handshake era read errors only with status 200.
    4. Later clients expect 404 for an unknown method, and 400 for a mistake in the request.
    """
    row = ending.row
    if ending.reason in _ALWAYS:
        return row.http
    if revision is None or row.stage in (Stage.FRAME, Stage.PARSE):
        return row.http
    if revision.has_handshake:
        return 200
    if row.stage in _EARLY or ending.reason is Reason.MISSING_CAPABILITY:
        return row.http
    return 200
