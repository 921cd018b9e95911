"""The failure of a call whose tool raised: what the tool states for its caller, redacted. Pure: no I/O."""

from __future__ import annotations

from portbook.errors import Failed, Reason
from portbook.exception_place import place_of
from portbook.stages.state import CallState
from portbook.tools.tool_error_text import BadStatement, StatedError, stated_error

__all__ = ["failure_by"]


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
    told = _redacted(stated, state)
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


def _redacted(stated: StatedError, state: CallState) -> StatedError:
    redactor = state.redactor
    if redactor is None:
        return stated
    message = redactor.redact_text(stated.message)
    code = None if stated.code is None else redactor.redact_text(stated.code)
    data, is_redacted = redactor.redact(stated.data)
    # So that the caller can tell that something was redacted.
    state.is_redacted = state.is_redacted or is_redacted or message != stated.message or code != stated.code
    return StatedError(message, code, data, stated.retryable)
