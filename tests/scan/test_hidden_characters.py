"""Which invisible characters are found, and which have honest uses."""

from __future__ import annotations

import pytest

from portbook.scan.hidden_characters import find_hidden
from portbook.scan.scanned_text_and_finding import DefinedText, Tier


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("plain", None),
        ("two\nlines\twith a tab", None),
        ("a" + "\n" * 10 + "b", None),
        ("a" + "\n \r" * 30 + "b", Tier.HARD),
        ("a" + " " * 40 + "b", None),
        ("a" + " " * 200 + "b", Tier.HARD),
        ("a" + " " * 200, None),
        ("a word with a l\u0435tter of Cyrillic", Tier.SOFT),
        ("\u0394\u03bb is \u03b1x, 5 \u00b5m and 3 k\u03a9", None),
        ("\ufeffat the start", None),
        ("in the\ufeff middle", Tier.HARD),
        ("👨‍👩‍👧 ❤️ 1️⃣", None),
        ("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", None),
        ("🏴\U000e0067\U000e0062", Tier.HARD),
        ("a\U000e0041", Tier.HARD),
        ("a\u200bb", Tier.HARD),
        ("ก\u200bข", Tier.SOFT),
        ("a\u200d", Tier.HARD),
        ("می\u200cنویسد", None),
        ("\u202etxt", Tier.HARD),
        ("\u2067שא\u2069", Tier.SOFT),
        ("\x1b[8m", Tier.HARD),
        ("😊\ufe0f", None),
        ("😊\ufe0f\ufe0e", Tier.HARD),
        ("a\ue000", Tier.SOFT),
    ],
)
def test_hidden_characters_have_a_tier(text: str, tier: Tier | None) -> None:
    found = list(find_hidden(DefinedText("/description", text)))
    assert {each.tier for each in found} == ({tier} if tier else set())
    assert all(each.pointer == "/description" for each in found)


def test_a_name_with_letters_of_two_scripts_is_hard() -> None:
    (found,) = find_hidden(DefinedText("/name", "p\u0430y_invoice", is_name=True))
    assert found.tier is Tier.HARD
