"""An automaton matches the texts that the validator's engine matches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.assets.compat.pattern_comparison import Automaton
from portbook.assets.compat.pattern_syntax import Unreadable, read_pattern
from portbook.schema.engine import validator_for

PATTERNS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", "^", "$", ""]),
    lambda inner: (
        st.builds("{}{}".format, inner, inner)
        | st.builds("({}|{})".format, inner, inner)
        | st.builds("({}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}"]))
    ),
    max_leaves=8,
)
TEXTS = st.text(alphabet="ab1 \n", max_size=6)


def is_match(pattern: str, text: str) -> bool:
    automaton = Automaton(read_pattern(pattern))
    state = automaton.first
    for character in text:
        state = automaton.after(state, character)
    return automaton.is_match(state)


@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=8))
def test_it_matches_what_the_engine_matches(pattern: str, texts: list[str]) -> None:
    engine = validator_for({"pattern": pattern})
    for text in texts:
        assert is_match(pattern, text) is engine.is_valid(text), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a$b", "ab", False),
        ("$^", "", True),
        ("$^", "a", False),
        ("(^a)*b", "aab", True),
        ("(a*)*$", "b", True),
        ("^(a|b)*?a$", "bba", True),
        ("x^", "x", False),
    ],
)
def test_the_ends_of_a_text_are_where_the_pattern_says(pattern: str, text: str, expected: bool) -> None:
    assert is_match(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["a{5000}", "((a{99}){99}){99}", "(){9999}"])
def test_a_pattern_with_too_many_positions_is_not_read(pattern: str) -> None:
    with pytest.raises(Unreadable):
        Automaton(read_pattern(pattern))
