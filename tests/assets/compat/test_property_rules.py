"""What the old schema states of properties decides what has to be proved of them, and whether it is."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.compat.compatibility_proof import PropertyRules
from portbook.assets.compat.pattern_comparison import TextLanguages
from portbook.assets.compat.subschemas import Place, Subschemas
from support.compared_schemas import NAME, case, made

ONE = {"properties": {"a": NAME}}
OTHERS = {"additionalProperties": NAME}
PATTERN = {"patternProperties": {"^a": NAME}}
NAMES = {"propertyNames": NAME}


def asked(keyword: str, old: Any, new: Any, *, is_proved: bool = True) -> tuple[bool, list[Place]]:
    """The verdict on `keyword` at the root of `new`, and the old places that it had to be proved for."""
    places: list[Place] = []

    def holds(_new: Place, place: Place) -> bool:
        places.append(place)
        return is_proved

    old_side = Subschemas(*made(old))
    rules = PropertyRules(old_side, TextLanguages(), holds)
    return rules.by_keyword[keyword](made(new)[0], (), old_side.root), places


@pytest.mark.parametrize(
    ("keyword", "old", "new", "places"),
    [
        case("a known property", "properties", ONE, ONE, ["properties/a"]),
        case("of the others", "properties", OTHERS, ONE, ["additionalProperties"]),
        case("never stated", "properties", {}, ONE, [""]),
        case("all", "additionalProperties", ONE | OTHERS, OTHERS, ["properties/a", "additionalProperties"]),
        case(
            "all but the named", "additionalProperties", ONE | OTHERS, ONE | OTHERS, ["additionalProperties"]
        ),
        case("but a pattern", "additionalProperties", PATTERN, PATTERN | OTHERS, [""]),
        case("the same pattern", "patternProperties", PATTERN, PATTERN, ["patternProperties/^a"]),
        case("names", "propertyNames", NAMES, NAMES, ["propertyNames"]),
    ],
)
def test_a_keyword_is_proved_for_the_places_that_its_properties_have(
    keyword: str, old: Any, new: Any, places: list[str]
) -> None:
    is_so, found = asked(keyword, old, new)
    assert is_so
    assert ["/".join(map(str, path)) for place in found for path in place or ((),)] == places
    assert asked(keyword, old, new, is_proved=False)[0] is False


@pytest.mark.parametrize(("known", "is_so"), [(["a", "b"], True), (["a"], True), (["b"], False)])
def test_a_required_name_was_required_before(known: list[str], is_so: bool) -> None:
    assert asked("required", {"required": known}, {"required": ["a"]}) == (is_so, [])


def test_names_that_were_never_restricted_are_not_proved() -> None:
    assert asked("propertyNames", {}, {"propertyNames": NAME}) == (False, [])
