"""How calls end that have no result: refused, failed, cancelled, or with questions. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.errors import Ending, Failed, Reason, Refused
from portbook.model import JSON, Done, InputNeeded, JSONObject, Outcome
from portbook.stages.state import CallState
from portbook.tools.spec import Effect

__all__ = ["as_outcome", "cut_short", "paused"]

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
