from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.builtin.docs_search import snippet


def tokens(raw: bytes) -> list[tuple[int, int, str]]:
    """Words as FTS5 has them, as far as these tests need it."""
    return [
        (word.start(), word.end(), word[0].decode().lower())
        for word in re.finditer(rb"[a-zA-Z\x80-\xff]+", raw)
    ]


LONG = "lorem lorem " * 100

CASES = [
    ("nothing", "", {"x"}, r""),
    ("short enough", "one  two\n\n\tthree", {"two"}, r"one two three"),
    ("no match", LONG, {"x"}, r"lorem .* lorem…"),
    ("in the middle", LONG + "needle\n" + LONG, {"needle"}, r"…lorem .* needle lorem .* lorem…"),
    ("at the end", LONG + "needle", {"needle"}, r"…lorem .* lorem needle"),
    ("beyond the first piece", LONG * 50 + "needle", {"needle"}, r"….* needle"),
    ("after a bracket", LONG + "(needle)", {"needle"}, r"….* \(needle\)"),
    ("where the most words are", f"a {LONG} b {LONG} a c b {LONG}", {"a", "b", "c"}, r"….* a c b .*…"),
    ("among wide characters", "é世😀 " * 200 + "needle " + "é世😀 " * 200, {"needle"}, r"….* needle .*…"),
    ("among white space", "\n" * 5000 + "x" + "\n" * 5000 + "needle", {"needle"}, r"…needle"),
    ("one endless word", "x" * 1000, {"y"}, r"x{238}…"),
    ("a match in one endless line", "ab=" * 500 + "needle" + "=ab" * 500, {"needle"}, r"….{60}needle.{172}…"),
]


@pytest.mark.parametrize(
    ("body", "stems", "pattern"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_snippet_shows_the_words_around_the_match(body: str, stems: set[str], pattern: str) -> None:
    found = snippet(body, stems, tokens)
    assert re.fullmatch(pattern, found)
    assert len(found) <= 240


@given(st.text(st.sampled_from("ab c\né😀…"), max_size=2000), st.sampled_from([{"a"}, {"ab", "c"}, {"x"}]))
def test_a_snippet_is_one_line_of_the_body_whatever_the_text(body: str, stems: set[str]) -> None:
    found = snippet(body.strip(), stems, tokens)
    assert len(found) <= 240
    assert found.strip("…") in " ".join(body.split())
    assert found == " ".join(found.split())
