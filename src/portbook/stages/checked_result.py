"""Validates a tool's result and redacts it, or refuses to give it. Pure: no I/O.

What happens to secrets depends on the tool. Most results are redacted. A document that has to arrive as it is
(a schema, an example, a patch) is never altered: the call fails if the document holds a secret.
"""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.canonical import NotJSON, json_bytes, rewritten_bytes, without_nan
from portbook.clock import Clock
from portbook.envelope.call_envelope import KnownRun
from portbook.errors import Failed, Finding, Reason, Refused
from portbook.model import JSON, NO_WISH, JSONObject, Kind, Occasion
from portbook.redaction import Redactor
from portbook.schema.engine import LateValidator, Validator, compile_official
from portbook.stages.ports import LARGE_BYTES
from portbook.stages.state import CallState
from portbook.tools.catalog import Tool
from portbook.wire.parsing import parse

__all__ = [
    "bytes_of",
    "checked_relay",
    "enclosed",
    "is_suspect",
    "may_be_enclosed",
    "redacted",
    "require_finite",
]

# Searches a megabyte in a tenth of the time that Python takes.
_HAS_NULL: Final = LateValidator(lambda: compile_official({"pattern": "null"}, ""))


def bytes_of(result: Any) -> bytes:
    """Return a result as JSON.

    Raises `Failed` where JSON cannot hold it.
    """
    try:
        body = rewritten_bytes(result)
    except NotJSON as error:
        raise _not_json(error) from None
    if len(body) > LARGE_BYTES or b"null" in body:
        require_finite(body, result)
    return body


def require_finite(body: bytes, result: Any) -> None:
    """Raise `Failed` where a null of `body` stands for a number that JSON does not have."""
    if len(body) > LARGE_BYTES and not _HAS_NULL.accepts(body.decode()):
        return
    try:
        without_nan(body, result)
    except NotJSON as error:
        raise _not_json(error) from None


def _not_json(error: NotJSON) -> Failed:
    return Failed(Reason.BAD_RESULT, (Finding("", str(error), "json", ""),))


def is_suspect(body: bytes, tool: Tool, state: CallState) -> bool:
    """Return whether a result may contain a secret that the caller must not get; a no is always right."""
    redactor = state.in_force.rules.redactor
    return redactor is not None and tool.spec.secrets != "give" and redactor.might_touch(body)


def redacted(
    result: Any, body: bytes, tool: Tool, output: Validator, state: CallState, redactor: Redactor
) -> tuple[JSON, bytes]:
    """Return a suspect result and its bytes as the caller may have them.

    Raises `Failed` where the output schema does not allow it, and where it may be neither given nor altered.
    """
    if tool.spec.secrets == "refuse":
        _require_no_secret(result, tool.spec.kind, redactor)
        return result, body
    result, is_redacted = redactor.redact(result)
    if is_redacted:
        state.is_redacted = True
        body = json_bytes(result)
        if not output.allows(result):  # withheld: the redacted result breaks the schema
            raise Failed(Reason.BAD_RESULT, output.findings(result))
    return result, body


def checked_relay(
    result: Any, body: bytes, tool: Tool, state: CallState, *, is_clean: bool = False
) -> tuple[JSON, JSON, bytes]:
    """Return the whole result of an MCP server's tool as the caller may have it, its value, and its bytes.

    The value is the structured content, which the output schema describes, or else the content.

    Raises `Failed` where the output schema does not allow it.
    """
    whole: JSON = result
    _require_structure(result, tool)
    redactor = state.redactor
    if not is_clean and redactor is not None and redactor.might_touch(body):
        whole, is_redacted = redactor.redact(result)
        if is_redacted:
            state.is_redacted = True
            _require_structure(whole, tool)
    value = _value_in(cast("dict[str, JSON]", whole))
    return whole, value, json_bytes(value)


def _value_in(whole: dict[str, JSON]) -> JSON:
    return whole["structuredContent"] if "structuredContent" in whole else {"content": whole["content"]}


def _require_structure(whole: Any, tool: Tool) -> None:
    if tool.spec.output_schema is True:
        return
    if "structuredContent" not in whole:
        finding = Finding(
            "/structuredContent", "missing, although the tool has an output schema", "required", ""
        )
        raise Failed(Reason.BAD_RESULT, (finding,))
    structured = whole["structuredContent"]
    if not tool.output.allows(structured):
        findings = (
            each._replace(pointer=f"/structuredContent{each.pointer}")
            for each in tool.output.findings(structured)
        )
        raise Failed(Reason.BAD_RESULT, tuple(findings))


def _require_no_secret(result: Any, kind: Kind, redactor: Redactor) -> None:
    for document in _documents(result) if kind == "resource" else (result,):
        pointer = redactor.place_of_secret(document)
        if pointer is not None:
            raise Failed(Reason.NOT_REDACTABLE, details={"pointer": pointer})


def _documents(contents: list[dict[str, Any]]) -> list[JSON]:
    """Return the documents in the contents of a resource: a pointer is one into the document."""
    return [_document(cast("str", block["text"])) for block in contents if "text" in block]


def _document(text: str) -> JSON:
    try:
        return parse(text.encode())
    except Refused:
        return text


# The envelope around a result, if the caller or the operator wants one. Pure but for the clock.

# A deterministic envelope says nothing of when it was made.
_UNTOLD: Final = Occasion()


def may_be_enclosed(state: CallState) -> bool:
    """Return whether the result may have to be put into an envelope; a no is always right."""
    wish = state.call.wish
    return (wish is not None and wish is not NO_WISH) or state.rules.enclosing.is_default


def enclosed(state: CallState, outcome: JSON | Failed, clock: Clock) -> JSONObject | None:
    """Return the envelope of an outcome, if the caller or the operator wants one."""
    call, rules = state.call, state.rules
    controls = rules.enclosing.controls_of(call.wish)
    if controls is None or not controls.is_wanted or state.tool is None or state.decision is None:
        return None
    occasion = _UNTOLD
    if not controls.deterministic:
        took_ms = round((clock.tick() - state.started) * 1000, 3)
        occasion = Occasion(state.identity.request, clock.now(), took_ms)
    policy = rules.policy
    known = KnownRun(
        state.tool,
        call.arguments,
        policy.digest,
        state.decision.rule,
        policy.digest_of_rule,
        occasion,
        state.is_redacted,
    )
    return rules.enclosing.enclose(outcome, controls, call.wish, known)
