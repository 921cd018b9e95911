"""Takes the secrets that servers were given out of what a server offers. Pure: no I/O.

What a server offers is listed to every client, and written to the lock and the store. A mark stands where a
secret was, which the scan finds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from portbook.model import JSON, JSONObject
from portbook.upstreams.listed_definitions import ObservedDefinition, Offer

__all__ = ["without_secrets"]


def without_secrets(offer: Offer, hide: Callable[[str], str]) -> Offer:
    """Return an offer without secrets; `hide` takes them out of a text.

    What has one in its own name could not be called any more, and is left out.
    """
    words = offer.instructions
    kept: list[ObservedDefinition] = []
    left_out = list(map(hide, offer.left_out))
    for each in offer.definitions:
        if hide(each.name) != each.name:
            left_out.append(f"a {each.kind} is left out: its name has a secret in it that the settings give")
            continue
        hidden = _hidden(each.definition, hide)
        kept.append(
            each if hidden is each.definition else replace(each, definition=cast("JSONObject", hidden))
        )
    return replace(
        offer,
        definitions=tuple(kept),
        instructions=None if words is None else hide(words),
        left_out=tuple(left_out),
    )


def _hidden(value: JSON, hide: Callable[[str], str]) -> JSON:
    """Return a value without secrets; the same object where there are none."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        told: JSONObject = {hide(name): _hidden(each, hide) for name, each in value.items()}
        is_same = all(name in told and told[name] is each for name, each in value.items())
        return value if is_same else told
    if isinstance(value, list):
        items = [_hidden(each, hide) for each in value]
        return value if all(one is other for one, other in zip(items, value, strict=True)) else items
    return value
