"""Which texts one pattern matches and another does not: found, shown not to exist, or left undecided."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.assets.compat.pattern_comparison import TextLanguages, Undecided
from portbook.schema.engine import validator_for

SEMVER = (
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"pattern": "^[a-z]+$"}, {"pattern": "^[a-z0-9]+$"}),
        ({"pattern": "[a-z]+"}, {"pattern": "[a-z0-9]+"}),
        ({"pattern": "^(a|b)*$"}, {"pattern": "^(b|a)*$"}),
        ({"pattern": SEMVER}, {"pattern": r"^\d+\.\d+\.\d+[-+.0-9a-zA-Z]*$"}),
        ({"pattern": r"^[\w.+-]+@[\w-]+\.[\w.-]+$"}, {"pattern": r"^\S+@\S+$"}),
        ({"pattern": "^A-[0-9]{4}$"}, {"minLength": 6, "maxLength": 6}),
        ({"pattern": "^[a-z]*$", "minLength": 1, "maxLength": 9}, {"pattern": "^[a-z]{1,9}$"}),
        ({}, {"pattern": ""}),
        ({}, {"pattern": r"^[\s\S]*$"}),
    ],
)
def test_a_pattern_that_matches_more_includes_the_other(old: Any, new: Any) -> None:
    assert all(TextLanguages().includes([old], keyword, value) for keyword, value in new.items())


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({"pattern": "^[a-z0-9]+$"}, "^[a-z]+$", "0"),
        ({"pattern": "a|b"}, "^a|b$", "ba"),
        ({}, "^.*$", "\n"),
        ({"pattern": "^a", "minLength": 3}, "b$", "aaa"),
        ({"pattern": "^a*$|^$"}, "$^", "a"),
    ],
)
def test_a_text_shows_that_it_does_not(old: Any, new: str, text: str) -> None:
    texts = TextLanguages()
    assert texts.find(texts.automata([old]), texts.automaton("pattern", new)) == text
    assert not texts.includes([old], "pattern", new)


def test_patterns_that_no_text_matches_both_are_apart() -> None:
    assert TextLanguages().are_apart("^x-", "^[a-w]")
    assert not TextLanguages().are_apart("x", "^[a-w]")
    assert not TextLanguages().are_apart("^x-", r"\bx")


def test_what_costs_too_much_is_undecided_and_so_is_what_follows() -> None:
    texts = TextLanguages(steps=10_000)
    hard = [texts.automaton("pattern", "(a|b)*a(a|b){12}")]
    with pytest.raises(Undecided):
        texts.find(hard, texts.automaton("pattern", "(b|a)*a(a|b){12}"))
    assert not texts.includes([{"pattern": "^aa$"}], "pattern", "^a+$")


PATTERNS = st.lists(
    st.sampled_from(["a", "b", "a*", "[ab]+", "(a|bb)?", "^", "$", "a{2,3}", "."]), max_size=5
).map("".join)


@given(PATTERNS, PATTERNS, st.lists(st.text(alphabet="abc", max_size=5), max_size=10))
def test_a_text_that_is_found_is_one_and_otherwise_there_is_none(
    one: str, other: str, tried: list[str]
) -> None:
    inside, outside = validator_for({"pattern": one}), validator_for({"pattern": other})
    texts = TextLanguages()
    found = texts.find([texts.automaton("pattern", one)], texts.automaton("pattern", other))
    if found is not None:
        assert inside.is_valid(found)
        assert not outside.is_valid(found)
    else:
        assert all(outside.is_valid(text) for text in tried if inside.is_valid(text))
