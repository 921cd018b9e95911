"""The prefilter passes every trigger, and stops what most values hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.redaction import Redactor
from portbook.redaction.prefilter import LONG_RUN, RUN, Prefilter


@pytest.mark.parametrize(
    ("trigger", "data", "passes_all"),
    [
        ("api_key", b"{'API-KEY':1}", True),
        ("api_key", b"a pikey", True),
        ("api_key", b"monkey", False),
        ("x509", b"X_123", True),
        ("x509", b"x12", False),
        ("-", b"anything", True),
    ],
)
def test_case_digits_and_separators_do_not_matter(trigger: str, data: bytes, passes_all: bool) -> None:
    assert Prefilter.of([trigger]).passes(data) is passes_all


def test_one_of_many_triggers_is_enough() -> None:
    prefilter = Prefilter.of(["apikey", "access-key", "pass", "password", "+x", "=y"])
    assert [prefilter.passes(data) for data in (b"access_key", b"passport", b"+x", b"=y", b"key + = ")] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_a_pattern_is_a_trigger_too() -> None:
    prefilter = Prefilter.of(["x"], patterns=["%[0a-f]{2}"])
    assert [prefilter.passes(data) for data in (b"%3D", b"%-3d", b"100%", b"%zz", b"X")] == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_a_mark_counts_only_in_a_run() -> None:
    prefilter = Prefilter.of([], marks=["eyJ"], passes_runs=True)
    assert prefilter.passes(b"eyJ" + b"a" * (RUN - 3))
    assert not prefilter.passes(b"eyJ" + b"a" * (RUN - 4))
    assert not prefilter.passes(b"a" * (LONG_RUN - 1))
    assert prefilter.passes(b"A/9+_-" * (LONG_RUN // 6 + 1))
    assert not Prefilter.of([], marks=["eyJ"]).passes(b"eyJ" + b"a" * 50)


def test_a_long_run_is_suspect_only_among_capital_letters_and_digits() -> None:
    prefilter = Prefilter.of([], passes_runs=True)
    run = b"abcdefghij" * 4
    for padding in (b"", b". " * 4096):
        verdicts = [prefilter.passes(padding + run + rest) for rest in (b"", b" A", b" 1", b" 1 Z", b" K 0")]
        assert verdicts == [False, False, False, True, True]


@pytest.mark.parametrize(
    "body",
    [
        b'{"hits":[{"id":"docs/how-to/a.md","score":1.25,"snippet":"Bound to loopback."}],"total":3}',
        b'{"id":"550e8400-e29b-41d4-a716-44665544abcd","at":"2026-01-02T03:04:05.678Z","ms":1700000000000}',
        b'{"name":"Gr\xc3\xbc\xc3\x9fe","keyboard":"qwertz","pass":"boarding"}',
        b"[1,2,3,null,true]",
    ],
)
def test_ordinary_values_are_spared(body: bytes) -> None:
    assert not Redactor(keys=["ssn"], secrets=["hunter2-hunter2"]).might_touch(body)


@given(st.text(min_size=1), st.text(), st.text())
def test_a_trigger_of_any_characters_is_found_wherever_it_stands(
    trigger: str, before: str, after: str
) -> None:
    assert Prefilter.of([trigger, "x"]).passes((before + trigger + after).encode())


def test_there_may_be_any_number_of_triggers_of_any_length() -> None:
    prefilter = Prefilter.of([f"{number}{chr(97 + number % 26)}{'xyz' * 700}q" for number in range(1000)])
    assert prefilter.passes(b"a 7h" + b"xyz" * 700 + b"q")
    assert not prefilter.passes(b"a 7hxyz")


# What a large value has around its one suspect part; nothing in it is a trigger.
PADDING = b"a line of text, " * 400


@given(
    st.sampled_from(
        [
            *(b"Pass-Word", b"tok en", b"%3D", b"\\\\", b'"+"', b"https://a:b@c", b"4111 1111 1111 1111"),
            *(b"sig=1", b"SEC_RET", b"bearer", b"eyJhbGciOiJub25l", b"ghp_0123456789abc", b"A1b/" * 10),
            *(b"eyJ", b"ghp_", b"A1b/" * 9, b"monkey", b"100%", b"http://a/b", b"1234567890123"),
        ]
    ),
    st.binary(max_size=6),
    st.binary(max_size=6),
)
def test_a_part_of_a_large_value_is_as_suspect_as_it_is_alone(
    part: bytes, before: bytes, after: bytes
) -> None:
    redactor = Redactor(keys=["ssn"], secrets=["hunter2-hunter2"])
    alone = b". " + before + part + after + b" ."
    if redactor.might_touch(PADDING + alone + PADDING) is not redactor.might_touch(alone):
        # Folded, `0_1234567890123` has the digits of a card; a large value is searched as it is spelled.
        text = alone.decode(errors="replace")
        assert redactor.redact_text(text) == text


def test_many_triggers_are_found_in_a_large_value() -> None:
    words = [f"{chr(97 + number % 26)}{chr(97 + number // 26)}word" for number in range(300)]
    for count in (10, 90, 300):
        prefilter = Prefilter.of(words[:count])
        assert all(prefilter.passes(PADDING + word.encode()) for word in words[:count])
        assert not prefilter.passes(PADDING)
