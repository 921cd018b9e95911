"""`/operator/policy`: the rules in force, what they decide on a call, and what changed ones would have."""

from __future__ import annotations

import asyncio
from typing import Final, cast

from portbook.app.running_app import App
from portbook.audit.call_index_filters_and_figures import BadFilter, moment_of
from portbook.doors.http.operator.operator_route import bad_parameter, command, question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Route, Serve
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.policy.decision_by_limits_and_rules import LIMIT_NAMES
from portbook.stores.caller_keys import ANONYMOUS

__all__ = ["EXPLAIN", "POLICY", "QUESTION", "REPLAY", "TRIAL", "explain_call", "replay_calls", "show_policy"]

POLICY: Final = "/operator/policy"
EXPLAIN: Final = f"{POLICY}/explain"
REPLAY: Final = f"{POLICY}/replay"

# The body of a question about one call, as `portbook explain` takes it.
QUESTION: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "tool": {"type": "string", "minLength": 1, "maxLength": 2048},
        "args": {"type": "object"},
        "caller": {"type": "string", "minLength": 1, "maxLength": 256},
        "session": {"type": ["string", "null"], "maxLength": 256},
        "attempt": {"type": "integer", "minimum": 1},
    },
    "required": ["tool"],
    "additionalProperties": False,
}
# The body of a trial: a settings file, of which the policy counts, and which calls are decided by it.
TRIAL: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "policy": {"type": "string", "maxLength": 1_000_000},
        "since": {"type": "string"},
        "until": {"type": "string"},
    },
    "required": ["policy"],
    "additionalProperties": False,
}


def show_policy(served: App) -> Serve:
    """Return what lists the rules and limits in force, each with its place."""

    async def answer(_request: InboundRequest) -> JSON:
        policy, settings = served.rules.policy, served.rules.settings
        rules: list[JSON] = [{**rule.as_data(), "place": rule.place} for rule in policy.rules]
        limits: list[JSON] = [
            {"name": name, "value": _json(getattr(policy.limits, name)), "place": policy.place_of(name)}
            for name in LIMIT_NAMES
        ]
        config = None if settings is None else settings.config
        return {
            "digest": policy.digest,
            "file": None if config is None else config.name,
            "rules": rules,
            "limits": limits,
        }

    return question(served.boundary, POLICY, "policy.show", answer)


def explain_call(served: App) -> Route:
    """Return the route that says how policy decides a call, without running it."""

    async def perform(body: JSONObject, _segment: str) -> JSON:
        # Late: only where somebody asks.
        from portbook.app.explained_decision import decide_call, doubt_about, explanation, placed_keys

        await served.boundary.settle()
        named = served.catalog.named(str(body["tool"]))
        if named is None:
            raise Refused(Reason.UNKNOWN_TOOL)
        tool, taken = named
        arguments = {**taken, **cast("JSONObject", body.get("args", {}))}
        caller = str(body.get("caller", ANONYMOUS.name))
        settings = served.rules.settings
        keys = () if settings is None else placed_keys(settings, served.keys.allowed(), served.store.place)
        decision = decide_call(
            served.rules.policy,
            keys,
            tool,
            arguments,
            caller=caller,
            attempt=cast("int", body.get("attempt", 1)),
            session=cast("str | None", body.get("session")),
        )
        doubt = doubt_about(caller, keys)
        return {**explanation(tool, decision, arguments), "warnings": [] if doubt is None else [doubt]}

    return command(served.boundary, EXPLAIN, "policy.explain", QUESTION, perform)


def replay_calls(served: App) -> Route:
    """Return the route that decides recorded calls by a changed policy, for one operator at a time."""
    replaying = asyncio.Lock()

    async def perform(body: JSONObject, _segment: str) -> JSON:
        # Late: only where somebody tries a policy.
        from portbook.app.replay_of_recorded_calls import PolicyTrial
        from portbook.settings import BadSettings

        settings = served.rules.settings
        assert settings is not None
        try:
            since, until = _moment(body, "since"), _moment(body, "until")
            trial = PolicyTrial.of(served.rules.policy, settings, str(body["policy"]), served.catalog.specs())
        except BadFilter as error:
            raise bad_parameter(error.name, error.problem) from None
        except BadSettings as error:
            raise bad_parameter("policy", "; ".join(error.problems)) from None
        async with replaying:
            return await asyncio.to_thread(trial.run, served.log_dir, since, until)

    return command(served.boundary, REPLAY, "policy.replay", TRIAL, perform)


def _moment(body: JSONObject, name: str) -> str | None:
    return moment_of(name, str(body[name])) if name in body else None


def _json(value: object) -> JSON:
    return list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else cast("JSON", value)
