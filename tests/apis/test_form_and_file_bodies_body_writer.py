"""Bodies that are not JSON: which writer an operation has, and which files its arguments name."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.form_and_file_bodies import BodyWriter, NamedFile
from portbook.apis.path_and_query_values import TakenNames
from portbook.errors import Refused
from portbook.tools.http_operation import BodyPart, HttpOperation


def writer(request: str, body: str | None = None, parts: tuple[BodyPart, ...] = ()) -> BodyWriter:
    operation = HttpOperation("g", "https://a.example", "POST", "/", request=request, body=body, parts=parts)
    return BodyWriter(operation, TakenNames("", ()))


FILE = (BodyPart("file", is_binary=True), BodyPart("note"))

NAMED: list[tuple[str, BodyWriter, dict[str, Any], list[NamedFile]]] = [
    ("base64", writer("image/png", "body"), {"body": "AA=="}, []),
    ("a body", writer("image/png", "body"), {"body": {"path": "a"}}, [NamedFile("a", ("body", "path"))]),
    ("no body", writer("image/png", "body"), {}, []),
    (
        "fields",
        writer("multipart/form-data", parts=FILE),
        {"file": [{"path": "a"}, "AA=="], "note": {"path": "no file"}},
        [NamedFile("a", ("file", "0", "path"))],
    ),
    (
        "fields of one argument",
        writer("multipart/form-data", "body", FILE),
        {"body": {"file": {"path": "a"}}},
        [NamedFile("a", ("body", "file", "path"))],
    ),
    ("text", writer("text/plain", "body"), {"body": "path"}, []),
]


@pytest.mark.parametrize(("what", "made", "arguments", "files"), NAMED, ids=[row[0] for row in NAMED])
def test_files_that_arguments_name_are_known(
    what: str, made: BodyWriter, arguments: dict[str, Any], files: list[NamedFile]
) -> None:
    assert list(made.files_in(arguments)) == files


def test_the_data_of_a_file_is_passed_on_by_its_path() -> None:
    made = writer("image/png", "body")
    assert made.write({"path": "a"}, ("body",), {"a": b"data"}) == (b"data", "image/png")
    assert made.write({"path": "a"}, ("body",), {}) == (b"", "image/png")


def test_a_form_is_an_object() -> None:
    with pytest.raises(Refused) as caught:
        writer("application/x-www-form-urlencoded", "body").write([1], ("body",), {})
    assert caught.value.findings[0].pointer == "/body"
