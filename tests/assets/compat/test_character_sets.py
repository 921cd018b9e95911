"""Sets of characters: what is in them, what is not, and one character of each kind."""

from __future__ import annotations

import pytest

from portbook.assets.compat.pattern_syntax import ANY, CLASSES, complement, representatives, union
from portbook.schema.engine import validator_for


def test_ranges_that_touch_are_one() -> None:
    assert union(((5, 9),), ((1, 4), (20, 30))) == ((1, 9), (20, 30))
    assert union(((1, 9),), ((2, 3),)) == ((1, 9),)


def test_a_complement_is_everything_else() -> None:
    assert complement(((5, 9),)) == ((0, 4), (10, 0x10FFFF))
    assert complement(ANY) == ()
    assert complement(()) == ANY


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_characters_that_the_validator_matches(name: str) -> None:
    matches = validator_for({"pattern": "^.$" if name == "." else rf"^\{name}$"}).allows
    edges = {edge + step for first, last in CLASSES[name] for edge in (first, last) for step in (-1, 0, 1)}
    for code in sorted({*range(0x3100), *edges, 0xD7FF, 0xE000}):
        if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            is_in = any(first <= code <= last for first, last in CLASSES[name])
            assert matches(chr(code)) is is_in, hex(code)


def test_there_is_one_character_for_each_way_to_be_in_the_sets() -> None:
    letters, digits = ((97, 122),), ((48, 57),)
    assert representatives([letters, digits, letters]) == ["a", "0", "A"]
    assert representatives([]) == ["a"]
    assert representatives([((0xE000, 0x10FFFF),)]) == ["a", "\ue000"]
