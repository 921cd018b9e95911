"""Large JSON is searched as it is spelled, and nothing of what a small value would lose is missed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.canonical import json_bytes
from portbook.redaction import Redactor
from portbook.redaction.prefilter import LARGE

PADDING = ["a line of text, and one more"] * (LARGE // 20)
# So many signs that everything is folded.
SIGNS = [{"a": "b", "c": "d=e"}] * (LARGE // 8)
REDACTOR = Redactor(keys=["ssn"], secrets=["hunter2-hunter2"])


def passes(value: object, around: Sequence[object]) -> bool:
    return REDACTOR.might_touch(json_bytes([*around, value, *around]))


AROUND = pytest.mark.parametrize("around", [PADDING, SIGNS], ids=["few signs", "many signs"])


@AROUND
@pytest.mark.parametrize(
    "value",
    [
        {"Pass-Word": "x"},
        {"p a s s w o r d": "x"},
        {"pass" + "_" * 400 + "word": "x"},
        {"SSN": "x"},
        "api key = x",
        "token" + " " * 400 + ": x",
        'token"""\n\t: x',
        "password\x01\x1f=x",
        '{"password"\n: "hidden"}',
        "Basic YWRhOnB3",
        "bEaReR abc",
        "-----BEGIN PRIVATE KEY-----",
        "a hunter2-hunter2 b",
        "'a' + 'b'",
        '"a" + "b"',
        "a\\b",
        "%3D",
        "https://a:b@c",
        "ghp_0123456789abcdef",
        "A1b/" * 10,
    ],
    ids=str,
)
def test_what_may_be_a_secret_passes(value: object, around: Sequence[object]) -> None:
    assert passes(value, around)


@AROUND
@pytest.mark.parametrize(
    "value",
    [
        "a new token, and the password of the day",
        {"tokens": "x", "keyboard": 1},
        "C++ and 1 + 1",
        "at 2026-01-02 03:04:05, 1234567890123 ms",
        "https://example.org/a@b",
        "eyJ",
        "A1b/" * 9,
    ],
    ids=str,
)
def test_what_is_none_does_not(value: object, around: Sequence[object]) -> None:
    assert not passes(value, around)


@pytest.mark.parametrize("gap", ["", " ", "-"])
@pytest.mark.parametrize("groups", [(4, 4, 4, 4), (4, 6, 5), (4, 6, 4)], ids=str)
@pytest.mark.parametrize("at", range(4))
def test_a_card_number_is_found_wherever_it_stands(gap: str, groups: tuple[int, ...], at: int) -> None:
    assert passes("." * at + gap.join("4" * count for count in groups), PADDING)


@given(st.text(alphabet="passwordPASSWORD-_ :=\"\\'ntx", max_size=24))
def test_no_spelling_of_a_name_is_missed(text: str) -> None:
    small = json_bytes([text])
    if REDACTOR.redact([text])[1]:
        assert REDACTOR.might_touch(small)
        assert passes(text, PADDING)
        assert passes(text, SIGNS)
