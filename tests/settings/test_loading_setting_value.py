"""The values of single settings: what is accepted, and what a message says of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.settings.bad_settings import BadSettings
from portbook.settings.declared_settings import SETTINGS, CertificateFiles
from portbook.settings.loading import value_from_text, value_of

BY_KEY = {setting.key: setting for setting in SETTINGS}

# Key, value; what must be said of it.
WRONG: list[tuple[str, Any, str]] = [
    ("server.port", True, "toml:2:1: server.port must be a whole number from 0 to 65535"),
    ("server.port", 70_000, "toml:2:1: server.port must be a whole number from 0 to 65535"),
    ("docs.enabled", "yes", "toml:2:1: docs.enabled must be true or false, without quotes"),
    ("python.toolsets", "a.py", 'toml:2:1: python.toolsets must be a list of strings, such as ["a", "b"]'),
    ("python.toolsets", ["a.py", 2],
     'toml:2:1/1: python.toolsets must be a list of strings, such as ["a", "b"]'),
    ("server.tls", {"cert": "a"},
     "toml:2:1: server.tls must be a table of two files: { cert = FILE, key = FILE }"),
    ("server.tls", "a", "toml:2:1: server.tls must be a table of two files: { cert = FILE, key = FILE }"),
]  # fmt: skip


def place(*below: str | int) -> str:
    return "/".join(["toml:2:1", *map(str, below)])


@pytest.mark.parametrize(("key", "value", "expected"), WRONG)
def test_a_wrong_value_is_told_with_its_place(key: str, value: Any, expected: str) -> None:
    with pytest.raises(BadSettings) as caught:
        value_of(BY_KEY[key], value, place)
    assert str(caught.value) == expected


def test_a_right_value_is_never_looked_for() -> None:
    def unneeded(*_: str | int) -> str:
        raise AssertionError

    assert value_of(BY_KEY["server.port"], 80, unneeded) == 80
    files = value_of(BY_KEY["server.tls"], {"cert": "a", "key": "b"}, unneeded)
    assert files == CertificateFiles(Path("a"), Path("b"))


def test_text_of_a_variable_becomes_a_number_where_one_is_wanted() -> None:
    assert value_from_text(BY_KEY["server.port"], "80", "$PORTBOOK_PORT") == 80
    with pytest.raises(BadSettings, match=r"^\$PORTBOOK_PORT: server\.port must be a whole number"):
        value_from_text(BY_KEY["server.port"], "+80", "$PORTBOOK_PORT")
