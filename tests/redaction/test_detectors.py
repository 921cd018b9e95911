"""What looks like a secret and what does not, and that no text makes the search slow."""

from __future__ import annotations

import base64

import pytest

from portbook.redaction import Redactor
from portbook.redaction.detectors import Cards, is_card_number
from portbook.redaction.prefilter import fold
from support.counts import count

# Made up, in pieces, so that nobody's scanner takes this file for a leak.
JWT = ".".join(["eyJhbGciOiJub25lIn0", "eyJzdWIiOiIxIn0", ""])
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----"
CARD = 4111111111111111
BASIC = base64.b64encode(b"ada:pw").decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("id AKIA" + "Q3EGRZ7XK5L2MNOP.", "id [redacted].", id="AWS key"),
        pytest.param("ASIA" + "Q3EGRZ7XK5L2MNOP", "[redacted]", id="AWS session key"),
        pytest.param("s: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "s: [redacted]", id="AWS secret"),
        pytest.param("xoxb-" + "12345678-abc", "[redacted]", id="Slack"),
        pytest.param("ghp_" + "a1" * 18, "[redacted]", id="GitHub"),
        pytest.param("github_pat_" + "a1" * 11, "[redacted]", id="GitHub, fine-grained"),
        pytest.param("glpat-" + "a1" * 10, "[redacted]", id="GitLab"),
        pytest.param("npm_" + "a1" * 18, "[redacted]", id="npm"),
        pytest.param("sk_live_" + "a1" * 8, "[redacted]", id="Stripe"),
        pytest.param("AIza" + "a-1_b" * 7, "[redacted]", id="Google"),
        pytest.param("sk-proj-" + "a1" * 10, "[redacted]", id="OpenAI"),
        pytest.param("pbk_" + "a1" * 16, "[redacted]", id="Portbook"),
        pytest.param(f"jwt {JWT}", "jwt [redacted]", id="JSON Web Token"),
        pytest.param(JWT[:30], "[redacted]", id="JSON Web Token cut off"),
        pytest.param(f"x.y.a{JWT}.z", "x.y.a[redacted]", id="JSON Web Token among dots"),
        pytest.param(f"basic  {BASIC}", "basic  [redacted]", id="Basic"),
        pytest.param("BEARER abc123", "BEARER [redacted]", id="Bearer with a digit"),
        pytest.param("Bearer " + "abcde" * 4, "Bearer [redacted]", id="Bearer, long"),
        pytest.param("see https://ada:p@ss@h/x", "see https://ada:[redacted]@h/x", id="URL"),
        pytest.param("amqp://:pw@h", "amqp://:[redacted]@h", id="URL without a user"),
        pytest.param(f"a {PEM} b", "a [redacted] b", id="PEM"),
        pytest.param(PEM[:40], "[redacted]", id="PEM cut off"),
        pytest.param("card 4111 1111 1111 1111.", "card [redacted].", id="Visa with spaces"),
        pytest.param("5500-0000-0000-0004", "[redacted]", id="Mastercard with dashes"),
        pytest.param("3782 822463 10005", "[redacted]", id="American Express"),
        pytest.param("378282246310005", "[redacted]", id="American Express, plain"),
        pytest.param("card=4111111111111111,", "card=[redacted],", id="a card after a sign"),
        pytest.param("30569309025904", "[redacted]", id="Diners"),
    ],
)
def test_a_secret_is_found_by_its_shape(text: str, expected: str) -> None:
    assert Redactor().redact_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Asia AKIA and AKIAabc",
        "xoxo-hugs-and-kisses",
        "ghp_short",
        "550e8400-e29b-41d4-a716-446655440000",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "src/Components/Header2/index/aaaaaaaaaaa",
        "https://example.com/a:b@c",
        "https://example.com:8080/?mail=ada@example.com",
        "ssh://git@example.com/x.git",
        "ada@example.com",
        "basic information about bearer instruments",
        "Basic understanding",
        "eyJ.a.b",
        "version eyJhbGciOiJub25lIn0 alone",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "4111111111111112",
        "1234567890123456",
        "14111111111111111",
        "0.4111111111111111",
        "4111111111111111.5",
        "1700000000000000000",
        "order_4111111111111111",
        "INV-4111111111111111",
        "4111111111111111-2",
        "x378282246310005",
        "2026-01-02T03:04:05.678Z",
        "the task-force sk-learn",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert Redactor().redact_text(text) == text


@pytest.mark.parametrize(
    ("number", "is_card"),
    [
        (4111111111111111, True),
        (378282246310005, True),
        (30569309025904, True),
        (6011000990139424, True),
        (4111111111111112, False),
        (-4111111111111111, False),
        (41111111, False),
        (10**400, False),
    ],
)
def test_a_card_is_found_as_a_number(number: int, is_card: bool) -> None:
    assert is_card_number(number) is is_card
    expected = ({"n": 0 if is_card else number}, is_card)
    assert Redactor(cards="everywhere").redact({"n": number}) == expected


@pytest.mark.parametrize(
    ("cards", "number", "alone", "in_a_word"),
    [
        ("strings", CARD, "[redacted]", f"id_{CARD}"),
        ("everywhere", 0, "[redacted]", "id_[redacted]"),
        ("off", CARD, str(CARD), f"id_{CARD}"),
    ],
)
def test_a_card_is_redacted_where_the_operator_says(
    cards: Cards, number: int, alone: str, in_a_word: str
) -> None:
    redactor = Redactor(cards=cards).with_secrets([])
    found, _ = redactor.redact({"number": CARD, "alone": str(CARD), "in a word": f"id_{CARD}"})
    assert found == {"number": number, "alone": alone, "in a word": in_a_word}
    assert redactor.redact_text(f'{{"n":{CARD}}}') == f'{{"n":{number}}}'


def test_no_detectors_means_no_cards() -> None:
    assert Redactor(detectors=False, cards="everywhere").redact(CARD) == (CARD, False)


_LENGTH = count("hostile texts")

# Each repeats what some detector starts with, or lets it run far before it fails.
HOSTILE = [
    *(
        "a",
        "A1",
        "1",
        "-",
        " ",
        "\\",
        "%",
        '"',
        "=",
        ":",
        "[",
        "{",
        ".",
        "@",
        "/",
        "eyJ",
        "eyJ.",
        "eyJaaaaaaaaaaaaaa",
    ),
    *(
        "://",
        "://a:",
        "://a:b",
        "AKIA",
        "ghp_",
        "xox",
        "xoxb-",
        "sk-ant-",
        "basic ",
        "bearer ",
        "Basic aaaaaaa ",
    ),
    *(
        "password",
        "password=",
        "password: ",
        "password=a ",
        "password:a ",
        "password= ",
        "password  ",
        "pwd=;",
    ),
    *(
        "password={",
        "password={a=",
        'password={a="',
        'password":"',
        "password=' ",
        'password="\\',
        "token:",
        "sig=?",
    ),
    *(
        "authorization:",
        "authorization: x ",
        "cookie: a=b; ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "-----END ",
    ),
    *(
        "1111-",
        "4111 ",
        "4111 1111 1111 ",
        "1.",
        "%41",
        "%25",
        '"+"',
        "' + '",
        '" ',
        "\\u0041",
        "\\\\u0041",
        "\\n",
    ),
    *(
        '{"password":',
        '["',
        "a.",
        "[redacted]",
        "password=[redacted]",
        "password=[redacted]a",
        "ghp_" + "a" * 35 + " ",
    ),
]


@pytest.mark.covers("002.redaction.linear")
@pytest.mark.soak("hostile texts")
@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
@pytest.mark.parametrize("before", ["", "password=", "https://a:"])
@pytest.mark.timeout(20)  # all of them take about a second; what is quadratic takes an hour
def test_no_text_makes_the_search_slow(unit: str, before: str) -> None:
    redactor = Redactor(secrets=["hunter2-hunter2", "a" * 30])
    text = before + unit * (_LENGTH // len(unit))
    found = redactor.redact_text(text)
    assert redactor.redact_text(found) == found


def test_folding_keeps_what_the_triggers_are_made_of() -> None:
    assert fold(b"Pass-Word_1 2\xc3\xbc") == "password00\xc3\xbc"
