"""A caller's string cannot forge, move or hide anything on a line that people read."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.escaping import MARK, escaped, escaped_json
from support.portbook_process import TESTS

CASES: list[Any] = json.loads((TESTS / "corpora" / "log_injection.json").read_text("utf-8"))


@pytest.mark.covers("002.logging.injection")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["escaped"][:24])
def test_strings_that_would_forge_a_line_are_escaped(case: Any) -> None:
    shown = escaped(case["value"])
    if len(case["value"]) > 256:  # the corpus shortens more, and without a mark
        assert shown == case["value"][:255] + MARK
        assert shown.startswith(case["escaped"])
    else:
        assert shown == case["escaped"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("grüße 東京 ✓", "grüße 東京 ✓", id="letters stay"),
        pytest.param("C:\\new", "C:\\new", id="backslashes stay"),
        pytest.param("a\u202eb\u2066c", "a\\u202eb\\u2066c", id="order of writing"),
        pytest.param("a\u00adb\u200bc", "a\\xadb\\u200bc", id="soft hyphen and zero width"),
        pytest.param("a\u2029b", "a\\u2029b", id="paragraph"),
        pytest.param("a\x7f\x9bb", "a\\x7f\\x9bb", id="delete and C1"),
        pytest.param("a\xa0b\u3000c", "a\\xa0b\\u3000c", id="spaces that are not the space"),
        pytest.param("\ud800", "\\ud800", id="half of a pair"),
        pytest.param("a\ufe0fb\U000e0100", "a\\ufe0fb\\U000e0100", id="variation selectors"),
        pytest.param("\u3164\u115f\u2800", "\\u3164\\u115f\\u2800", id="letters that nobody sees"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_what_nobody_sees_is_shown(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        pytest.param("abcdef", 6, "abcdef", id="just fits"),
        pytest.param("abcdefg", 6, "abcde…", id="one too many"),
        pytest.param("ab\ncd", 6, "ab\\ncd", id="fits with its escape"),
        pytest.param("abc\ncd", 6, "abc\\n…", id="an escape fits"),
        pytest.param("abcd\nd", 6, "abcd…", id="an escape is never cut"),
        pytest.param("\U000e0041" * 3, 20, "\\U000e0041…", id="nor a long one"),
    ],
)
def test_a_long_string_is_shortened_with_a_mark(text: str, limit: int, shown: str) -> None:
    assert escaped(text, limit) == shown


@given(st.text(), st.integers(1, 40))
def test_whatever_comes_is_one_line_of_visible_characters(text: str, limit: int) -> None:
    shown = escaped(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs") for character in shown)
    assert escaped(shown, limit) == shown


@given(st.text())
def test_json_says_the_same_with_nothing_unseen(text: str) -> None:
    shown = escaped_json(json.dumps([text], ensure_ascii=False))
    assert json.loads(shown) == [text]
    assert shown.isprintable()
