"""What a text calls a secret is taken out; its name and the text around it stay."""

from __future__ import annotations

import pytest

from portbook.redaction import Redactor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("password=x", "password=[redacted]", id="assigned"),
        pytest.param("PASSWORD = 'a b' next", "PASSWORD = '[redacted]' next", id="in quotes"),
        pytest.param('pwd="a\\"b" next', 'pwd="[redacted]" next', id="an escaped quote"),
        pytest.param('"token": "x", "a": 1', '"token": "[redacted]", "a": 1', id="like JSON"),
        pytest.param('{\\"token\\":\\"x\\",', '{\\"token\\":\\"[redacted]\\",', id="like JSON in JSON"),
        pytest.param("{'secret': 5}", "{'secret': [redacted]}", id="a number"),
        pytest.param("'secret': [1, 2], x", "'secret': [redacted], x", id="an array"),
        pytest.param("PWD={a;b=c};X=1", "PWD=[redacted];X=1", id="in braces"),
        pytest.param("Password=a b c;Server=x", "Password=[redacted];Server=x", id="several words"),
        pytest.param("a?api_key=x&b=1", "a?api_key=[redacted]&b=1", id="in a query"),
        pytest.param("?sv=1&sig=a%2Bb&x", "?sv=1&sig=[redacted]&x", id="a signature"),
        pytest.param("access_token=x", "access_token=[redacted]", id="a token"),
        pytest.param("DB_PASSWORD=x", "DB_PASSWORD=[redacted]", id="at the end of a name"),
        pytest.param("Authorization: Basic eA==", "Authorization: [redacted]", id="a header"),
        pytest.param("authorization: Digest a=b, c=d\nX: y", "authorization: [redacted]\nX: y", id="a line"),
        pytest.param("Set-Cookie: a=b; Secure", "Set-Cookie: [redacted]", id="a cookie"),
        pytest.param("x-api-key: hunter2", "x-api-key: [redacted]", id="a header of one word"),
        pytest.param("password: hunter2!", "password: [redacted]", id="odd enough"),
        pytest.param("password: 'hunter'", "password: '[redacted]'", id="in quotes after a colon"),
        pytest.param("secret: abcdefghijklmnop", "secret: [redacted]", id="long enough"),
        pytest.param("password=[redacted]x", "password=[redacted]", id="behind a mark"),
        pytest.param("password=a password=b", "password=[redacted] password=[redacted]", id="twice"),
        pytest.param("ssn=123 my_ssn=4", "ssn=[redacted] my_ssn=4", id="a name of the operator's"),
        pytest.param("password=\n  x", "password=\n  [redacted]", id="on the next line"),
        pytest.param("a=b:c=ü:pass-word = x", "a=b:c=ü:pass-word = [redacted]", id="behind other signs"),
        pytest.param("é pwd\u00a0= x, é=y", "é pwd\u00a0= [redacted], é=y", id="odd spaces"),
        pytest.param("token=a=b:pwd=c d=e", "token=[redacted] d=e", id="a name in a value"),
        pytest.param("user_key1=a", "user_key1=[redacted]", id="a name with a digit"),
        pytest.param("cookie:a&[b1", "cookie:[redacted]", id="a header at the start"),
        pytest.param('token: "a"', 'token: "[redacted]"', id="a short word in quotes"),
        pytest.param("token: [a]", "token: [redacted]", id="a short word in brackets"),
        pytest.param("ÜBER-geheim=a", "ÜBER-geheim=[redacted]", id="a name beyond ASCII"),
    ],
)
def test_the_value_of_a_secrets_name_goes(text: str, expected: str) -> None:
    redactor = Redactor(keys=["ssn", "user-key1", "ÜBER_geheim"])
    assert redactor.redact_text(text) == expected
    assert redactor.redact_text(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "password: required for all calls",
        "The token: a word for a thing",
        "Authorization: needed",
        "next_page_token=abc",
        "nextPageToken=abc&x",
        "max_tokens=100",
        "if password == other",
        "password => x",
        "passwords=5",
        "keyboard=5",
        "password=",
        'password=""',
        'subscription_key = { env = "NAME" }',
        "secret://vault/name",
        "design=5 sig=abc",
        "assn=1",
        "password [redacted]",
    ],
)
def test_prose_and_other_names_stay(text: str) -> None:
    assert Redactor(keys=["ssn"]).redact_text(text) == text
