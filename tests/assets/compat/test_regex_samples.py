"""A text that a pattern matches, or none where that would cost too much."""

from __future__ import annotations

import pytest

from portbook.assets.compat.counterexample import sample
from portbook.schema.engine import validator_for


@pytest.mark.filterwarnings("error")
def test_a_pattern_that_python_may_read_otherwise_some_day_warns_nobody() -> None:
    assert sample("^[a-z--b]+$") is not None


@pytest.mark.parametrize(
    "pattern", ["^A-[0-9]{4}$", "a|b", "[^a]b", r"\d+\w\s", "(x(y)?){2}", ".", "", r"^[\w.]+@x\.org$"]
)
def test_a_sampled_text_matches_its_pattern(pattern: str) -> None:
    for more in (0, 1, 5):
        text = sample(pattern, more)
        assert text is not None
        assert validator_for({"pattern": pattern}).is_valid(text), (pattern, text)


@pytest.mark.parametrize(
    "pattern", ["(", "a{5000}", "((a{99}){99}){99}", "(((((a{99}){99}){99}){99}){99})", "(?<n>a)"]
)
def test_a_pattern_that_cannot_be_sampled_has_no_text(pattern: str) -> None:
    assert sample(pattern) is None
