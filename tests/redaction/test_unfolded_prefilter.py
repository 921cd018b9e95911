"""Large JSON is searched as it is spelled, and nothing of what a small value would lose is missed."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from urllib.parse import quote

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
        "it&#39;s",
        "a &lt; b",
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


@AROUND
@pytest.mark.parametrize(
    ("redactor", "value"),
    [
        (Redactor(pointers=["/größe"]), {"größe": "x"}),
        (Redactor(secrets=["schlüssel-schlüssel"]), "der schlüssel-schlüssel"),
        (Redactor(secrets=["密钥密钥密钥密钥"]), "密钥密钥密钥密钥"),
        (REDACTOR, "für hunter2-hunter2"),
        (REDACTOR, "é 4444 4444 4444 4444"),
    ],
    ids=["pointer", "secret", "secret beyond Latin", "ASCII beside others", "card number beside others"],
)
def test_what_is_beyond_ascii_is_found(redactor: Redactor, value: object, around: Sequence[object]) -> None:
    assert redactor.might_touch(json_bytes([*around, value, *around]))


def test_half_a_pair_of_surrogates_in_a_large_text_hides_nothing() -> None:
    for secret in ("token", "plain"):
        text = f'{{"\ud800": {json_bytes(PADDING).decode()}, "{secret}": "x"}}'
        assert (REDACTOR.redact_text(text) != text) is (secret == "token")


@given(st.text(alphabet="passwordPASSWORD-_ :=\"\\'ntx", max_size=24))
def test_no_spelling_of_a_name_is_missed(text: str) -> None:
    small = json_bytes([text])
    if REDACTOR.redact([text])[1]:
        assert REDACTOR.might_touch(small)
        assert passes(text, PADDING)
        assert passes(text, SIGNS)


LONG = "correct horse battery staple and then some more words here"
# Folded, its start reaches beyond what counts as the secret.
HOLLOW = "-".join("123456789abcdefghijklmnopqrs")


@AROUND
@pytest.mark.parametrize("secret", [LONG, HOLLOW], ids=["words", "separators"])
@pytest.mark.parametrize("length", [40, 41, 44, 50])
def test_a_known_secret_whose_end_is_cut_off_is_found(
    length: int, secret: str, around: Sequence[object]
) -> None:
    redactor = Redactor(secrets=[secret])
    text = f"a {secret[:length]}..."
    assert redactor.might_touch(json_bytes([*around, text, *around]))
    assert redactor.redact_text(text) == "a [redacted]..."
    assert redactor.redact([text]) == (["a [redacted]..."], True)


@pytest.mark.parametrize(
    "spelled",
    ["it&#39;s-a-&quot;key", "it&#x27;s-a-&#34;key", "it&apos;s-a-&#X22;key", "it&amp;#39;s-a-&amp;quot;key"],
)
@pytest.mark.parametrize("around", [[], PADDING, SIGNS], ids=["small", "few signs", "many signs"])
def test_a_known_secret_is_found_in_any_spelling_of_html(spelled: str, around: list[object]) -> None:
    redactor = Redactor(secrets=["it's-a-\"key"])
    found, is_redacted = redactor.redact([*around, f"<b>{spelled}</b>", *around])
    assert is_redacted
    assert spelled not in str(found)
    assert redactor.might_touch(json_bytes([*around, f"<b>{spelled}</b>", *around]))


@given(st.text(alphabet="ab<&>\"'\\\n\x01é%+ -", min_size=8, max_size=60), st.data())
def test_no_spelling_of_a_known_secret_is_missed(secret: str, data: st.DataObject) -> None:
    redactor = Redactor(secrets=[secret])
    spell = data.draw(st.sampled_from([str, html.escape, quote, json.dumps, lambda text: text[:40]]))
    value = f"a {spell(secret)} b"
    if redactor.redact([value])[1]:
        for around in ((), PADDING, SIGNS):
            assert redactor.might_touch(json_bytes([*around, value, *around]))


@pytest.mark.parametrize("around", [[], PADDING, SIGNS], ids=["small", "few signs", "many signs"])
def test_a_known_secret_is_found_where_html_has_numbers_for_its_letters(around: Sequence[object]) -> None:
    redactor = Redactor(secrets=["pässwörd-漢字"])
    value = "a p&#228;ssw&#246;rd-&#28450;&#23383; b"
    assert redactor.redact([value])[0] == ["a [redacted] b"]
    assert redactor.might_touch(json_bytes([*around, value, *around]))


@pytest.mark.parametrize("letters", ["abc", 'é"\\', "日本語", "😀🎉", "\x01\x1f"])
def test_hundreds_of_long_secrets_of_any_letters_are_searched_for(letters: str) -> None:
    secrets = [f"{number:04}" + letters * (40 + number % 7) for number in range(400)]
    redactor = Redactor(secrets=secrets, detectors=False)
    around = ["plain text" for _ in range(LARGE // 8)]
    assert not redactor.might_touch(json_bytes(around))
    assert redactor.might_touch(json_bytes([*around, secrets[-1]]))
    found, _ = redactor.redact([*around, secrets[-1]])
    assert found == [*around, "[redacted]"]
