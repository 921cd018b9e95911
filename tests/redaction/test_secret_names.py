"""Names of members that hold secrets, however they are written."""

from __future__ import annotations

import pytest

from portbook.canonical import json_bytes
from portbook.model import JSON
from portbook.redaction import Redactor


@pytest.mark.covers("002.redaction.keys")
@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("password", True),
        ("Password", True),
        ("pass_word", True),
        ("smtpPassword", True),
        ("X-Api-Key", True),
        ("Ocp-Apim-Subscription-Key", True),
        ("ToKeN", True),
        ("access_token", True),
        ("Set-Cookie", True),
        ("Proxy-Authorization", True),
        ("connectionString", True),
        ("client secret", True),
        ("Über-Password", True),
        ("ssn", True),
        ("S-S_N", True),
        ("nextPageToken", False),
        ("max_tokens", False),
        ("tokens", False),
        ("password_hint", False),
        ("key", False),
        ("assn", False),
        ("secretary", False),
        ("to\u212aen", False),  # a Kelvin sign is not the letter
    ],
)
def test_a_member_is_taken_out_by_its_name(name: str, is_secret: bool) -> None:
    value: JSON = {"a": [{name: "x", "b": 1}]}
    found, is_redacted = Redactor(keys=["SSN"]).redact(value)
    assert is_redacted is is_secret
    assert found == {"a": [{name: "[redacted]" if is_secret else "x", "b": 1}]}


def test_names_beyond_ascii_are_compared_without_case_too() -> None:
    redactor = Redactor(keys=["Schlüssel"])
    for name in ("schlüssel", "SCHLÜSSEL", "Schlüs-sel"):
        value: JSON = {name: "x"}
        assert redactor.might_touch(json_bytes(value))
        assert redactor.redact(value) == ({name: "[redacted]"}, True)
    assert not redactor.might_touch(b'{"plain":"x"}')
