"""A value that must not be seen is found however it is written; what is only like it stays."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from portbook.redaction import Redactor
from portbook.redaction.known_secrets import LEAST_LENGTH, has_views, views

SECRET = "p@ss w<ü>rd/+"


def redacted(text: str, *secrets: str) -> str:
    return Redactor(secrets=secrets or (SECRET,), detectors=False).redact_text(text)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(SECRET, id="as it is"),
        pytest.param(quote(SECRET), id="in a path"),
        pytest.param(quote(SECRET, safe=""), id="in a query"),
        pytest.param(quote(SECRET, safe="").lower(), id="in small digits"),
        pytest.param(quote_plus(SECRET), id="in a form"),
        pytest.param(html.escape(SECRET), id="in HTML"),
        pytest.param(json.dumps(SECRET)[1:-1], id="in ASCII JSON"),
        pytest.param(SECRET.encode().hex(), id="in hexadecimal"),
        pytest.param(SECRET.encode().hex().upper(), id="in large hexadecimal"),
    ],
)
def test_a_form_is_taken_out_where_it_stands(form: str) -> None:
    assert redacted(f"before {form}, after") == "before [redacted], after"


@pytest.mark.parametrize("length", range(6, 12))
@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc"])
@pytest.mark.parametrize("after", [b"", b"z", b"yz", b"xyz"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_is_found_at_any_offset(length: int, before: bytes, after: bytes, encode: object) -> None:
    secret = "\u00ff\u00fe?>~}hunter"[:length]
    assert callable(encode)
    text = encode(before + secret.encode() + after).decode()
    found = redacted(f"<{text}>", secret)
    assert "[redacted]" in found
    # What is left does not say a single byte of it.
    left = found.partition("[redacted]")
    assert len(left[0]) <= 1 + 4
    assert len(left[2]) <= 1 + 6


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\\u0070@ss w<\\u00fc>rd/+", id="some characters escaped"),
        pytest.param("".join(f"\\u{ord(character):04X}" for character in SECRET), id="all of them"),
        pytest.param("".join(f"\\\\u{ord(character):04x}" for character in SECRET), id="twice"),
        pytest.param(quote(quote(SECRET)), id="percent signs escaped, too"),
        pytest.param('p@ss "+"w<ü>rd/+', id="in two pieces"),
        pytest.param("p@s' + 's w<ü>r' + 'd/+", id="in three pieces"),
        pytest.param("\\x70@ss w<ü>rd\\/+", id="in other escapes"),
    ],
)
def test_a_text_that_disguises_a_secret_goes_as_a_whole(text: str) -> None:
    assert redacted(f"before {text} after") == "[redacted]"


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        pytest.param("a short secret", ["short"], id="too short to look for"),
        pytest.param("[redacted]", ["redacted"], id="part of a mark"),
        pytest.param("hunter", ["hunter2"], id="not all of it"),
        pytest.param("Hunter2", ["hunter2"], id="in other letters"),
        pytest.param("C:\\new\\table 100%", ["hunter2"], id="escapes of something else"),
    ],
)
def test_what_is_no_secret_stays(text: str, secrets: list[str]) -> None:
    assert redacted(text, *secrets) == text


def test_secrets_that_overlap_are_both_taken_out() -> None:
    assert redacted("xabcdefghix", "abcdef", "defghi") == "x[redacted]x"
    assert redacted("abcdef", "abcdef", "abcdefgh") == "[redacted]"


def test_of_a_long_secret_what_was_not_cut_off_is_found() -> None:
    secret = "".join(f"{number:02d}-" for number in range(40))
    assert redacted(f"a {secret[:50]}… b", secret) == "a [redacted]… b"
    assert redacted(f"a {secret}b", secret) == "a [redacted]b"
    assert redacted(f"a {secret[:39]}… b", secret) == f"a {secret[:39]}… b"


def test_a_mark_and_what_follows_it_do_not_make_a_secret() -> None:
    found = redacted("abcdefxyz", "abcdef", "ed]xyz")
    assert "ed]xyz" not in found


def test_a_secret_that_json_cannot_hold_is_not_looked_for() -> None:
    assert redacted("a plain text", "\ud800secret") == "a plain text"


def json_twice(text: str) -> str:
    return json.dumps(json.dumps(text))


@pytest.mark.parametrize(
    "secret", [r"C:\new\table", r"abc\backgh", r"a\u0041bcdef", r"abc\defgh", "quo\"te\\back\\\\slash'x"]
)
@pytest.mark.parametrize("spell", [repr, json.dumps, json_twice, lambda text: json.dumps(json_twice(text))])
def test_a_backslash_of_a_secret_is_no_escape(secret: str, spell: Callable[[str], str]) -> None:
    found, is_changed = Redactor(secrets=[secret]).redact([f"x {spell(secret)}"])
    assert is_changed
    assert found in (["[redacted]"], ["x [redacted]"], ['x "[redacted]"'], ["x '[redacted]'"])


@given(st.text(alphabet="abnrtfxu014\\\"' ", min_size=8, max_size=30), st.integers(1, 3), st.booleans())
def test_no_depth_of_escapes_hides_a_secret_that_has_some(secret: str, depth: int, by_repr: bool) -> None:
    assume(len(next(views(secret), secret)) >= LEAST_LENGTH)  # shorter texts are in too many others
    text = secret
    for _ in range(depth):
        text = repr(text) if by_repr else json.dumps(text)
    assert Redactor(secrets=[secret]).redact([f"x {text} y"])[1]


def test_views_undo_one_layer_after_another() -> None:
    assert list(views("plain")) == []
    assert list(views("%255cu0041")) == ["%5cu0041", "\\u0041", "A"]
    assert list(views("\\ud83d\\ude00")) == ["\U0001f600"]


@given(st.text(alphabet="%\\ux04cCé3+'\" ", max_size=12))
def test_there_are_views_where_it_is_said_so(text: str) -> None:
    found = list(views(text))
    assert has_views(text) is bool(found)
    if "\\" not in text and found and "%" in text and "+" not in text:
        assert found[0] == unquote(text)
