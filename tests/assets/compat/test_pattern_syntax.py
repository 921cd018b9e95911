"""Patterns as trees: what is read, and what is left to others."""

from __future__ import annotations

import pytest

from portbook.assets.compat.pattern_syntax import Choice, Edge, One, Repeat, Series, Unreadable, read_pattern

A, B = One(((97, 97),)), One(((98, 98),))


@pytest.mark.parametrize(
    ("pattern", "tree"),
    [
        ("", Series(())),
        ("^a$", Series((Edge(is_start=True), A, Edge(is_start=False)))),
        ("a|b", Choice((Series((A,)), Series((B,))))),
        ("(a)(?:b)", Series((Series((A,)), Series((B,))))),
        ("a*b+?", Series((Repeat(A, 0, None), Repeat(B, 1, None)))),
        ("a{2}b{1,}a{0,3}", Series((Repeat(A, 2, 2), Repeat(B, 1, None), Repeat(A, 0, 3)))),
        (r"\x61\u0062", Series((A, B))),
        (r"[\d_-]", Series((One(((45, 45), (48, 57), (95, 95))),))),
        ("[^b-\U0010ffff]", Series((One(((0, 97),)),))),
        (r"\.\/\-\n", Series(tuple(One(((code, code),)) for code in (46, 47, 45, 10)))),
    ],
)
def test_a_pattern_is_read_into_its_tree(pattern: str, tree: object) -> None:
    assert read_pattern(pattern) == tree


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?i)a", "(?<n>a)", r"(a)\1", r"\bx", r"\pL", "[[a]]", "[]a]", "[a&&b]", "[a--b]", "[~~]",
        "a**", "^*", "}", "]", "(", ")", "[a", "\\", r"\cA", r"[a-\d]", "(" * 60 + ")" * 60,
    ],
)  # fmt: skip
def test_what_engines_may_read_differently_is_not_read(pattern: str) -> None:
    with pytest.raises(Unreadable):
        read_pattern(pattern)
