"""Where secrets come from: variables and files, and never the settings themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.apis.gateway import Login, Secret, read_login, read_secret
from portbook.apis.table_reader import Table

HERE = Path("/settings")
ENV = Secret(env="NAME")


class Complaint(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Complaint(f"{'.'.join(map(str, path))} {sentence}")


def table(value: Any) -> Table:
    return Table({"it": value}, ("http", "x"), complain)


def test_a_secret_is_a_variable_or_a_file() -> None:
    assert read_secret(table({"env": "NAME"}), "it", HERE) == ENV
    assert read_secret(table({"file": "key"}), "it", HERE) == Secret(file=HERE / "key")
    assert read_secret(table({}), "other", HERE) is None


@pytest.mark.parametrize(
    ("given", "login"),
    [
        ({"env": "NAME"}, Login(ENV)),
        ({"file": "key"}, Login(Secret(file=HERE / "key"))),
        ({"username": "ada", "password": {"env": "NAME"}}, Login(ENV, "ada")),
        ({"username": {"env": "NAME"}}, Login(None, ENV)),
        ({"username": {"file": "name"}, "password": {"env": "NAME"}}, Login(ENV, Secret(file=HERE / "name"))),
    ],
    ids=str,
)
def test_a_login_is_a_secret_or_a_user_with_a_password(given: Any, login: Login) -> None:
    assert read_login(table(given), "it", HERE) == login


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("sk_live", 'http.x.it must be { env = "NAME" }, '),
        ({}, 'http.x.it must be { env = "NAME" } or { file = "path" }'),
        ({"env": "A", "file": "b"}, 'http.x.it must be { env = "NAME" } or { file = "path" }'),
        ({"password": {"env": "NAME"}}, "http.x.it has a password without a username"),
        ({"username": "a:b", "password": {"env": "NAME"}}, "http.x.it.username must be printable, without"),
        ({"username": "a\n"}, "http.x.it.username must be printable"),
        ({"username": "ada", "password": "secret"}, "http.x.it.password must be { env"),
        ({"user": "ada"}, "http.x.it.user is not a valid key; did you mean username?"),
        ({"username": "ada", "env": "NAME"}, "http.x.it.env is not a valid key"),
    ],
    ids=str,
)
def test_a_login_that_is_neither_is_refused_without_its_value(given: Any, sentence: str) -> None:
    with pytest.raises(Complaint) as caught:
        read_login(table(given), "it", HERE)
    assert str(caught.value).startswith(sentence)
    assert "sk_live" not in str(caught.value)
