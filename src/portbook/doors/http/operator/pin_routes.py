"""`GET /operator/pins` and `POST /operator/pins/NAME`: what of MCP servers is withheld, and its approval."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from portbook.app.running_app import App
from portbook.doors.http.operator.operator_route import asked, bad_parameter, command, question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Route, Serve
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject

if TYPE_CHECKING:
    from portbook.app.pin_review import PinReview
    from portbook.pins.pinned_definitions import PinnedKind

__all__ = ["PINS", "REVIEW", "decide_on_pins", "list_pins"]

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
    from portbook.stores.upstreams import ObservationStore

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
