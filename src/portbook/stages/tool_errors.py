"""The ending of a call whose tool raised: what the tool states for its caller, redacted. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from portbook.errors import Ending, Failed, Reason, Refused
from portbook.exception_place import Fault, place_of
from portbook.executors.unsent import NothingSent
from portbook.model import Done
from portbook.stages.ports import LARGE_BYTES, OffLoop
from portbook.stages.state import CallState
from portbook.tools.catalog import Tool
from portbook.tools.spec import ToolError
from portbook.tools.tool_error_text import BadStatement, StatedError, stated_bytes, stated_error

__all__ = ["fail", "failure_by"]


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
