"""How calls end that have no result: refused, failed, cancelled, with questions. Pure: no I/O.

If the tool raised, the ending has what the tool states for its caller, redacted.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, cast

from portbook.errors import Ending, Failed, Reason, Refused
from portbook.exception_place import Fault, place_of
from portbook.executors.cancelled_before_sending import NothingSent
from portbook.model import JSON, Done, InputNeeded, JSONObject, Outcome
from portbook.stages.ports import LARGE_BYTES, OffLoop
from portbook.stages.state import CallState
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, ToolError
from portbook.tools.tool_error_text import BadStatement, StatedError, stated_bytes, stated_error

__all__ = ["as_outcome", "cut_short", "fail", "paused"]

# Details of a failure that an API or a server behind the tool wrote.
_WORDS_OF_SERVERS: Final = ("upstream_body", "upstream_content", "error")


def paused(state: CallState, needed: InputNeeded) -> Outcome:
    """Return the outcome of a call whose tool needs answers of the client first."""
    needed.is_redacted = state.is_redacted
    try:
        told = state.exchange.pause(needed)
    except Failed as failure:
        return failure
    if told is None:
        return Failed(Reason.NO_ANSWER, note="asked where nobody can answer")
    return Done(b"", told, is_asking=True)


def as_outcome(ending: Ending, state: CallState) -> Outcome:
    """Return an ending as the outcome of its call, without secrets."""
    # An exception that is kept keeps every frame that it passed through alive.
    ending.__traceback__ = None
    ending.__context__ = None
    assert isinstance(ending, Refused | Failed)
    # Findings hold no values, but names of members that the client sent.
    if ending.findings:
        ending.findings = tuple(
            finding._replace(
                pointer=state.without_secrets(finding.pointer),
                message=state.without_secrets(finding.message),
            )
            for finding in ending.findings
        )
    if isinstance(words := ending.details.get("detail"), str):  # a backend's words
        ending.details = {**ending.details, "detail": state.without_secrets(words)}
    for name in _WORDS_OF_SERVERS:
        if name in ending.details:
            ending.details = {**ending.details, name: state.redacted(cast("JSON", ending.details[name]))}
    if ending.difference is not None and state.redactor is not None:  # it has texts of a server
        ending.difference = cast("JSONObject", state.redactor.redact(cast("JSON", ending.difference))[0])
    ending.only_read = _only_reads(state)
    if state.is_redacted:
        ending.details = {**ending.details, "redacted": True}
    return ending


def cut_short(reason: Reason, state: CallState, note: str | None = None) -> Outcome:
    """Return the outcome of a call that was stopped on its way."""
    outcome = Failed(reason, note=note) if state.has_begun else Refused(reason, note=note)
    outcome.only_read = _only_reads(state)
    return outcome


def _only_reads(state: CallState) -> bool:
    return state.tool is not None and state.tool.spec.effect is Effect.READ


# The ending of a call whose tool raised.


def fail(
    error: BaseException,
    state: CallState,
    tool: Tool,
    on_fault: Callable[[Fault], None],
    off_loop: OffLoop,
) -> Coroutine[Any, Any, Done]:
    """Raise the ending of a call whose tool raised `error`; return what raises it if that takes long.

    `on_fault` receives an exception of the tool's own.
    """
    if isinstance(error, NothingSent):
        state.has_begun = False
        raise error
    state.exchange.send_reports()
    if isinstance(error, Refused) and error.reason is Reason.POLICY_VIOLATION:
        state.decision = denied = state.rules.policy.denied_where_dialled()
        state.forms = None  # those of the tool have the decision that was made before
        raise Refused(error.reason, note=error.note, details={"rule": denied.rule}) from None
    if isinstance(error, Ending) or not isinstance(error, Exception):
        raise error
    named, request = f"{tool.spec.kind} {tool.spec.name}", state.identity.request
    on_fault(Fault(error, named, request, isinstance(error, ToolError)))
    if stated_bytes(error) > LARGE_BYTES:
        return _fail_off_loop(partial(failure_by, error, state), off_loop)
    raise failure_by(error, state) from None


async def _fail_off_loop(failure: Callable[[], Failed], off_loop: OffLoop) -> Done:
    raise await off_loop.run(failure) from None


def failure_by(error: Exception, state: CallState) -> Failed:
    """Return the failure of a call whose tool raised `error`; only a stated error says more than that."""
    note = place_of(error)
    try:
        stated = stated_error(error)
    except BadStatement as flaw:
        said = {"error": f"The tool failed: {flaw}."}
        return Failed(Reason.TOOL_FAILED, note=f"{note}; {flaw}", details=said)
    if stated is None:
        return Failed(Reason.TOOL_FAILED, note=note)
    told = _redacted_statement(stated, state)
    # A member that the tool does not state is left out.
    details = {
        name: value
        for name, value in (
            ("error", told.message or None),
            ("code", told.code),
            ("data", told.data),
            ("retryable", told.retryable),
        )
        if value is not None
    }
    return Failed(Reason.TOOL_ERROR, note=note, details=details, is_retryable=told.retryable)


def _redacted_statement(stated: StatedError, state: CallState) -> StatedError:
    redactor = state.redactor
    if redactor is None:
        return stated
    message = redactor.redact_text(stated.message)
    code = None if stated.code is None else redactor.redact_text(stated.code)
    data, is_redacted = redactor.redact(stated.data)
    # So that the caller can tell that something was redacted.
    state.is_redacted = state.is_redacted or is_redacted or message != stated.message or code != stated.code
    return StatedError(message, code, data, stated.retryable)
