"""Credentials: from the environment, from files that rotate, from the platform's identity endpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.gateway import Gateway, Login, Secret
from portbook.executors.api_credentials import Credentials, NoCredential, SentCredentials
from portbook.net.http_client import HttpClient
from portbook.tools.http_operation import CredentialUse

BASE = "https://api.example.com"


def lines(gateway: Gateway, environ: dict[str, str]) -> str:
    return asyncio.run(Credentials(gateway, environ, HttpClient()).read()).lines


@pytest.mark.covers("002.execution.credentials-by-us")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ""),
        ({"subscription_key": Secret(env="KEY")}, "Ocp-Apim-Subscription-Key: key-value\r\n"),
        (
            {"subscription_key": Secret(env="KEY"), "subscription_key_header": "X-Key"},
            "X-Key: key-value\r\n",
        ),
        ({"bearer": Secret(env="TOKEN")}, "Authorization: Bearer token-value\r\n"),
        ({"headers": (("X-Plain", "a"), ("X-Secret", Secret(env="KEY")))}, "X-Secret: key-value\r\n"),
        (
            {"subscription_key": Secret(env="KEY"), "bearer": Secret(env="TOKEN")},
            "Ocp-Apim-Subscription-Key: key-value\r\nAuthorization: Bearer token-value\r\n",
        ),
    ],
)
def test_credentials_become_header_lines(options: dict[str, Any], expected: str) -> None:
    environ = {"KEY": "key-value", "TOKEN": " token-value\n"}
    assert lines(Gateway("orders", BASE, **options), environ) == expected


@pytest.mark.parametrize(
    "value", [None, "", "  ", "a\r\nX-Admin: 1", "a\nb", "é", "a\x00", "x" * 20_000], ids=ascii
)
def test_a_secret_that_cannot_be_sent_is_none(value: str | None) -> None:
    environ = {} if value is None else {"KEY": value}
    gateway = Gateway("orders", BASE, subscription_key=Secret(env="KEY"))
    with pytest.raises(NoCredential, match=r"^http\.orders\.subscription_key: ") as caught:
        lines(gateway, environ)
    assert not value or not value.strip() or value not in str(caught.value)
    assert Credentials(gateway, environ, HttpClient()).problems() == [str(caught.value)]


def test_every_secret_is_known_once_it_was_read(tmp_path: Path) -> None:
    seen: list[str] = []
    (tmp_path / "token").write_text("file-token")
    gateway = Gateway(
        "orders",
        BASE,
        headers=(("X-Plain", "not a secret"), ("X-Key", Secret(env="OTHER"))),
        subscription_key=Secret(env="KEY"),
        bearer=Secret(file=tmp_path / "token"),
    )
    credentials = Credentials(
        gateway, {"KEY": "key-value", "OTHER": "other-value"}, HttpClient(), seen.append
    )
    assert credentials.problems() == []
    assert credentials.secrets() == seen == ["other-value", "key-value", "file-token"]


def sent(gateway: Gateway, environ: dict[str, str], *uses: CredentialUse) -> SentCredentials:
    return asyncio.run(Credentials(gateway, environ, HttpClient()).read(uses))


def test_a_credential_of_a_scheme_goes_where_the_operation_says() -> None:
    logins = (("key", Login(Secret(env="KEY"))), ("other", Login(Secret(env="OTHER"))))
    gateway = Gateway("orders", BASE, bearer=Secret(env="TOKEN"), logins=logins)
    environ = {"KEY": "k&=1", "OTHER": "o-1", "TOKEN": "t-1"}
    always = "Authorization: Bearer t-1\r\n"
    assert sent(gateway, environ) == SentCredentials(always)
    assert sent(gateway, environ, CredentialUse("key", "header", "X-Key")) == SentCredentials(
        f"{always}X-Key: k&=1\r\n"
    )
    assert sent(
        gateway, environ, CredentialUse("key", "query", "api key"), CredentialUse("other", "query", "o")
    ) == SentCredentials(always, "api%20key=k%26%3D1&o=o-1")
    assert sent(
        gateway, environ, CredentialUse("key", "cookie", "sid"), CredentialUse("other", "cookie", "b")
    ) == SentCredentials(always, "", "sid=k&=1; b=o-1")


@pytest.mark.parametrize("value", ["a;b", 'a"b', "a b", "a,b", "a\\b"])
def test_a_cookie_that_would_be_two_is_refused(value: str) -> None:
    gateway = Gateway("orders", BASE, logins=(("key", Login(Secret(env="KEY"))),))
    with pytest.raises(NoCredential, match=r"^http\.orders\.credentials\.key: a cookie cannot") as caught:
        sent(gateway, {"KEY": value}, CredentialUse("key", "cookie", "sid"))
    assert value not in str(caught.value)


def test_a_credential_of_a_scheme_that_is_missing_is_a_problem_at_start() -> None:
    gateway = Gateway("orders", BASE, logins=(("key", Login(Secret(env="KEY"), Secret(env="NAME"))),))
    assert Credentials(gateway, {"KEY": "k-1"}, HttpClient()).problems() == [
        "http.orders.credentials.key.username: the environment variable NAME is not set"
    ]
