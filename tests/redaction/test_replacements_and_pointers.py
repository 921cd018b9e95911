"""Where a secret is in a document that must not be altered, and what is none there."""

from __future__ import annotations

import base64

import pytest

from portbook.model import JSON
from portbook.redaction import Redactor

KNOWN = "hunter2-hunter2"
TOKEN = "ghp_" + "a1" * 18
PEM = "-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        pytest.param(KNOWN, "", id="the document itself"),
        pytest.param({"a": [1, {"~b/": f"x {KNOWN}"}]}, "/a/1/~0b~1", id="in a string, deep down"),
        pytest.param({"a": {"b": {f"x-{KNOWN}": 1}}}, "/a/b", id="as a name"),
        pytest.param([base64.b64encode(KNOWN.encode()).decode()], "/0", id="in base64"),
        pytest.param([KNOWN.replace("u", "\\u0075")], "/0", id="escaped"),
        pytest.param({"n": 12345678}, "/n", id="as a number"),
        pytest.param({"t": TOKEN}, "/t", id="a token with a mark of its own"),
        pytest.param({"k": f"{PEM}\n{'MIIabc12' * 8}\n"}, "/k", id="a private key"),
        pytest.param({"password": "x", "token": {"type": "string"}}, None, id="names"),
        pytest.param(["password=x", "Authorization: Bearer abc123"], None, id="names in text"),
        pytest.param(["4111111111111111", 4111111111111111], None, id="a card"),
        pytest.param({"pattern": f"^{PEM}[\\s\\S]+$"}, None, id="what a private key looks like"),
        pytest.param([None, True, 1.5, "plain"], None, id="nothing"),
    ],
)
def test_the_place_of_a_secret(document: JSON, pointer: str | None) -> None:
    redactor = Redactor(keys=["ssn"], secrets=[KNOWN, "12345678"], cards="everywhere")
    assert redactor.place_of_secret(document) == pointer


def test_without_detectors_only_known_secrets_count() -> None:
    redactor = Redactor(secrets=[KNOWN], detectors=False)
    assert redactor.place_of_secret([TOKEN, KNOWN]) == "/1"
