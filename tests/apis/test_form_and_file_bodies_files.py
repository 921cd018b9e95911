"""Files among arguments: base64 of any length, read piece by piece."""

from __future__ import annotations

import base64
import os

import pytest

from portbook.apis.form_and_file_bodies import file_of
from portbook.errors import Refused
from portbook.model import JSON

PIECE = 256 * 1024


@pytest.mark.parametrize("size", [0, 1, 2, 3, 196_607, 196_608, 196_609, 600_000])
def test_base64_of_any_length_is_read(size: int) -> None:
    data = os.urandom(size)
    assert file_of(base64.b64encode(data).decode(), ("file",)).data == data


@pytest.mark.parametrize(
    "text",
    ["?", "AA=", "A", "AA==AA==", "AAAA\n", "A" * (PIECE - 2) + "==" + "AAAA", "A" * PIECE + "A"],
    ids=["a letter", "padding", "half", "two texts", "a line break", "padding inside", "half at the end"],
)
def test_what_is_no_base64_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(Refused) as caught:
        file_of(text, ("body", "file"))
    assert caught.value.findings[0].pointer == "/body/file"


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"base64": ["x"]}, "/file/base64"),
        ({"base64": {}}, "/file/base64"),
        ({"base64": None}, "/file/base64"),
        ({}, "/file/base64"),
        ({"path": 5}, "/file/path"),
        ({"path": []}, "/file/path"),
        ({"base64": "AA==", "filename": 5}, "/file/filename"),
        ({"base64": "AA==", "content_type": ["text/plain"]}, "/file/content_type"),
        (5, "/file"),
    ],
)
def test_a_file_with_a_member_that_is_no_text_is_refused_at_its_place(value: JSON, pointer: str) -> None:
    with pytest.raises(Refused) as caught:
        file_of(value, ("file",))
    assert caught.value.findings[0].pointer == pointer
