"""Values that keywords suggest: what they list, and what is next to their limits."""

from __future__ import annotations

from portbook.assets.compat.suggested_values import around, scalars


def test_the_values_next_to_limits_are_suggested() -> None:
    suggested = list(scalars([{"minimum": 5}, {"maxLength": 7}, {"enum": ["x"]}, {"format": "date"}]))
    assert suggested[0] == "x", "listed values come first"
    for value in (4, 5, 6, "a" * 6, "a" * 7, "a" * 8, "2026-01-02"):
        assert value in suggested


def test_only_limits_that_are_numbers_have_neighbours() -> None:
    assert around([{"minItems": 3}, {"maxItems": "x"}, {}], "minItems", "maxItems") == {2, 3, 4}
