"""The envelope around a result, if the caller or the operator wants one. Pure but for the clock."""

from __future__ import annotations

from portbook.clock import Clock
from portbook.envelope.call_envelope import KnownRun
from portbook.errors import Failed
from portbook.model import JSON, NO_WISH, JSONObject
from portbook.provenance.occasion import Occasion
from portbook.stages.state import CallState

__all__ = ["enclosed", "may_be_enclosed"]


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
    policy, rule = rules.policy, state.decision.rule
    known = KnownRun(
        state.tool,
        call.arguments,
        policy.digest,
        rule,
        policy.digest_of_rule(rule),
        Occasion(state.identity.request, clock.now(), round((clock.tick() - state.started) * 1000, 3)),
        state.is_redacted,
    )
    return rules.enclosing.enclose(outcome, controls, call.wish, known)
