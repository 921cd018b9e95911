"""A credential in the form that its scheme sends, and what is known of it for redaction."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from portbook.apis.gateway import Login, Secret
from portbook.executors.api_credentials import LoginValue, NoCredential
from portbook.tools.http_operation import CredentialForm

ENVIRON = {"KEY": "k-1", "PAIR": "ada:p w", "COLON": "a:b"}
KEY = Secret(env="KEY")


def encoded(pair: str) -> str:
    return base64.b64encode(pair.encode()).decode()


def value(login: Login, seen: list[str] | None = None) -> LoginValue:
    return LoginValue("http.x.credentials.it", login, ENVIRON, (seen if seen is not None else []).append)


@pytest.mark.parametrize(
    ("login", "form", "sent"),
    [
        (Login(KEY), "plain", "k-1"),
        (Login(KEY), "bearer", "Bearer k-1"),
        (Login(Secret(env="PAIR")), "basic", f"Basic {encoded('ada:p w')}"),
        (Login(KEY, "ada"), "basic", f"Basic {encoded('ada:k-1')}"),
        (Login(None, KEY), "basic", f"Basic {encoded('k-1:')}"),
        (Login(KEY, "zoë"), "basic", f"Basic {encoded('zoë:k-1')}"),
    ],
    ids=str,
)
def test_a_login_is_sent_in_the_form_of_its_scheme(login: Login, form: CredentialForm, sent: str) -> None:
    assert value(login).read(form) == sent


@pytest.mark.parametrize(
    ("login", "sentence"),
    [
        (Login(KEY), "http.x.credentials.it: must be username:password"),
        (Login(None, Secret(env="COLON")), "http.x.credentials.it.username: must have no colon"),
        (Login(None, Secret(env="NONE")), "http.x.credentials.it.username: the environment variable NONE"),
    ],
    ids=str,
)
def test_a_login_that_is_no_pair_is_refused_without_its_value(login: Login, sentence: str) -> None:
    with pytest.raises(NoCredential) as caught:
        value(login).read("basic")
    assert str(caught.value).startswith(sentence)
    assert "k-1" not in str(caught.value)


def test_the_encoded_pair_is_a_secret_too(tmp_path: Path) -> None:
    seen: list[str] = []
    (tmp_path / "password").write_text("first")
    login = value(Login(Secret(file=tmp_path / "password"), "ada"), seen)
    assert login.known() == []
    login.read("basic")
    login.read("basic")
    assert login.known() == seen == ["first", encoded("ada:first")]
    (tmp_path / "password").write_text("rotated")
    login.read("basic")
    assert login.known() == ["first", "rotated", encoded("ada:first"), encoded("ada:rotated")]
