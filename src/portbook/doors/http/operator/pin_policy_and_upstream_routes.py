"""What operators review and change: `/operator/pins`, `/operator/policy` and `/operator/upstreams`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from portbook.app.running_app import App
from portbook.audit.call_index_filters_and_figures import BadFilter, moment_of
from portbook.doors.http.operator.operator_route import asked, bad_parameter, command, question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Route, Serve
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.policy.decision_limits_rules_and_remedy import LIMIT_NAMES
from portbook.stores.caller_keys import ANONYMOUS

if TYPE_CHECKING:
    from portbook.app.pin_review import PinReview
    from portbook.pins.pinned_definitions import PinnedKind

__all__ = [
    "EXPLAIN",
    "PINS",
    "POLICY",
    "QUESTION",
    "REPLAY",
    "RESTART",
    "REVIEW",
    "TRIAL",
    "UPSTREAMS",
    "decide_on_pins",
    "explain_call",
    "list_pins",
    "list_upstreams",
    "replay_calls",
    "restart_upstream",
    "show_policy",
]

PINS: Final = "/operator/pins"

# More than any server has; a body is limited anyway.
_MOST: Final = 10_000
_SHOWN: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["tool", "prompt", "server"]},
        "name": {"type": "string"},
        "digest": {"type": "string"},
    },
    "required": ["kind", "name", "digest"],
    "additionalProperties": False,
}
# The body of a decision.
REVIEW: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["approve", "keep"]},
        "definitions": {"type": "array", "items": _SHOWN, "minItems": 1, "maxItems": _MOST},
        "force": {"type": "boolean"},
    },
    "required": ["decision", "definitions"],
    "additionalProperties": False,
}


def list_pins(served: App) -> Serve:
    """Return what shows withheld definitions beside the approved ones; of one `server` if the query names it.

    A comparison of schemas may take seconds, so it runs in a thread, one at a time.
    """
    comparing = asyncio.Lock()

    async def answer(request: InboundRequest) -> JSON:
        query = asked(request)
        wanted = query.pop("server", None)
        for name in query:
            raise bad_parameter(name, "is not known; use server")
        _require(served, wanted)

        def compared() -> JSON:
            review = _review_of(served)
            names = [wanted] if wanted is not None else sorted(review.offers)
            return {"servers": [_server(review, name) for name in names]}

        async with comparing:
            return await asyncio.to_thread(compared)

    return question(served.boundary, PINS, "pins.list", answer)


def decide_on_pins(served: App) -> Route:
    """Return the route that approves definitions of a server, or keeps them withheld."""

    async def perform(body: JSONObject, alias: str) -> JSON:
        _require(served, alias)
        chosen = cast("list[JSONObject]", body["definitions"])
        named: list[JSON] = [{"kind": each["kind"], "name": each["name"]} for each in chosen]
        if body["decision"] == "keep":
            return {"approved": [], "kept": named}
        await asyncio.to_thread(_approve, served, alias, chosen, is_forced=body.get("force") is True)
        return {"approved": named, "kept": []}

    return command(
        served.boundary, PINS, "pins.decide", REVIEW, perform, decides="decision", segment_is="server"
    )


def _require(served: App, alias: str | None) -> None:
    if alias is not None and (served.servers is None or alias not in served.servers):
        raise Refused(Reason.UPSTREAM_UNKNOWN)


def _approve(served: App, alias: str, chosen: list[JSONObject], *, is_forced: bool) -> None:
    from portbook.app.pin_review import ShownDefinition

    shown = [
        ShownDefinition(cast("PinnedKind", each["kind"]), str(each["name"]), str(each["digest"]))
        for each in chosen
    ]
    _review_of(served).approve(alias, shown, is_forced=is_forced)


def _review_of(served: App) -> PinReview:
    """Return what the servers were last seen to offer beside what is approved."""
    from portbook.app.pin_review import PinReview, last_offers  # late: only where somebody reviews
    from portbook.stores.upstream_status_and_offers import ObservationStore

    fleet, settings = served.servers, served.rules.settings
    declared = {} if fleet is None else fleet.declared()
    offers = last_offers(ObservationStore(served.store, served.clock), declared)
    assert settings is not None
    return PinReview.of(settings.folder, declared, offers)


def _server(review: PinReview, alias: str) -> JSONObject:
    offer = review.offers[alias]
    return {
        "name": alias,
        "problem": offer if isinstance(offer, str) else None,
        "pinned": review.pinned(alias),
        "definitions": review.withheld(alias).as_data(),
    }


# `/operator/policy`: the rules in force, what they decide on a call, and what changed ones would have.

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
        from portbook.app.explain_and_dry_run import decide_call, doubt_about, explanation, placed_keys

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


# `/operator/upstreams`: how the MCP servers are doing, and the restart of one.

UPSTREAMS: Final = "/operator/upstreams"

# The body of a restart.
RESTART: Final[JSONObject] = {
    "type": "object",
    "properties": {"action": {"const": "restart"}},
    "required": ["action"],
    "additionalProperties": False,
}


def list_upstreams(served: App) -> Serve:
    """Return what lists the MCP servers of this process."""

    async def answer(_request: InboundRequest) -> JSON:
        fleet, settings = served.servers, served.rules.settings
        if fleet is None or settings is None:
            return {"upstreams": []}
        rows: list[JSON] = []
        for status in fleet.statuses():
            withheld = fleet.offers.withheld_of(status.alias)
            error = status.last_error
            rows.append(
                {
                    **status.as_data(),
                    "quarantined": sum(each.verdict.is_quarantined for each in withheld),
                    # What a server wrote to its standard error may hold what it was given.
                    "last_error": None if error is None else served.boundary.without_secrets(error),
                    "place": settings.place_of("mcp", status.alias),
                }
            )
        return {"upstreams": rows}

    return question(served.boundary, UPSTREAMS, "upstreams.list", answer)


def restart_upstream(served: App) -> Route:
    """Return the route that restarts a server, in every process that runs it."""

    async def perform(_body: JSONObject, alias: str) -> JSON:
        if served.servers is None or alias not in served.servers:
            raise Refused(Reason.UPSTREAM_UNKNOWN)
        from portbook.stores.upstream_status_and_offers import (
            UpstreamStore,  # late: only where there is a server
        )

        await UpstreamStore(served.store, served.clock).ask_restart(alias)
        return {"restarting": alias}

    return command(
        served.boundary,
        UPSTREAMS,
        "upstreams.restart",
        RESTART,
        perform,
        decides="action",
        segment_is="server",
    )
