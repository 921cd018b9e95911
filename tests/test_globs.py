"""Patterns of names: what matches, what covers what, and what is said of one that cannot be meant."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.globs import covers, matches, problem_of

names = st.text("abc._", max_size=8)
patterns = st.text("ab._*?", min_size=1, max_size=6)


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        case("itself", "refund", "refund", True),
        case("something else", "refund", "refunds", False),
        case("a part", "fund", "refund", False),
        case("everything", "*", "orders.get_order", True),
        case("everything, even nothing", "*", "", True),
        case("a beginning", "orders.*", "orders.get_order", True),
        case("another beginning", "orders.*", "order.get", False),
        case("an end", "*.delete", "orders.delete", True),
        case("a dot is a dot", "a.b", "axb", False),
        case("one character", "get_?", "get_a", True),
        case("one character, not none", "get_?", "get_", False),
        case("one character, not two", "get_?", "get_ab", False),
        case("stars in a row", "a***b", "axb", True),
        case("a line break is a character", "a*", "a\n", True),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, name: str, *, expected: bool) -> None:
    assert matches([pattern], name) is expected


def test_one_of_several_patterns_is_enough_and_none_is_too_few() -> None:
    assert matches(["a", "b*"], "bc")
    assert not matches([], "a")


@given(patterns, names)
def test_patterns_match_as_the_shells_do(pattern: str, name: str) -> None:
    assert matches([pattern], name) is fnmatch.fnmatchcase(name, pattern)


@given(patterns, patterns, names)
def test_a_pattern_that_covers_another_matches_whatever_that_one_does(
    wide: str, narrow: str, name: str
) -> None:
    if covers(wide, narrow) and matches([narrow], name):
        assert matches([wide], name)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        case("everything covers a name", "*", "refund", True),
        case("everything covers everything", "*", "*", True),
        case("a longer beginning", "a*", "ab*", True),
        case("a shorter beginning", "ab*", "a*", False),
        case("a name covers itself", "a", "a", True),
        case("one character does not cover many", "a?", "a*", False),
        case("many cover one", "a*", "a?", True),
    ],
)
def test_what_covers_what(wide: str, narrow: str, *, expected: bool) -> None:
    assert covers(wide, narrow) is expected


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("Refund", "refund"),
        ("mcp.tool:refund", "leave out the prefix"),
        ("every.get-Env", "shows the canonical names, which 'every.get_env_*' may match"),
        ("[abc]", "use a-z"),
        ("", "use a-z"),
        ("a b", "use a-z"),
        ("a" * 129, "use a-z"),
    ],
)
def test_a_pattern_that_can_match_no_tool_is_told_with_what_to_write(pattern: str, hint: str) -> None:
    assert hint in (problem_of(pattern) or "")


@pytest.mark.parametrize("pattern", ["*", "refund", "orders.*", "get_?", "a.b_c*"])
def test_a_pattern_of_tool_names_has_no_problem(pattern: str) -> None:
    assert problem_of(pattern) is None
