"""What a server offers is told without the secrets that it was given."""

from __future__ import annotations

from typing import Any

from portbook.upstreams.listed_definitions import ObservedDefinition, Offer
from portbook.upstreams.served_offers import without_secrets


def observed(kind: str, name: str, **definition: Any) -> ObservedDefinition:
    return ObservedDefinition("box", kind, name, definition)


def hide(text: str) -> str:
    return text.replace("swordfish", "[mark]")


def test_texts_and_names_of_members_at_any_depth_are_told_without_them() -> None:
    told = without_secrets(
        Offer("box", (observed("tool", "t", deep=[{"a swordfish": ["swordfish!", 1]}]),), "say swordfish"),
        hide,
    )
    assert told.definitions == (observed("tool", "t", deep=[{"a [mark]": ["[mark]!", 1]}]),)
    assert (told.instructions, told.left_out) == ("say [mark]", ())


def test_what_has_none_is_the_same_object() -> None:
    clean = observed("tool", "t", deep=[{"a": ["b", 1, None, True]}], other={})
    told = without_secrets(Offer("box", (clean,)), hide)
    assert told.definitions[0] is clean


def test_what_has_one_in_its_own_name_is_left_out() -> None:
    offer = Offer("box", (observed("resource", "r:swordfish"), observed("tool", "t")))
    told = without_secrets(offer, hide)
    assert [each.name for each in told.definitions] == ["t"]
    assert told.left_out == ("a resource is left out: its name has a secret in it that the settings give",)
