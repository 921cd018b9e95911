"""A schema file that a person names: ready to use, or its problems with their places."""

from __future__ import annotations

import pytest

from portbook.assets.named_schema_file import UnusableFile, lines_of, read_document, read_schema
from portbook.assets.schema_files import SchemaFiles
from support.asset_samples import Write


def test_a_schema_comes_with_its_text_and_what_it_refers_to(write: Write) -> None:
    write("b.json", {"type": "integer"})
    path = write("a.json", {"$ref": "b.json"})
    source = read_schema(SchemaFiles(), str(path))
    assert (source.text, source.document) == (path.read_text(), {"$ref": "b.json"})
    assert (source.validator.allows(1), source.validator.allows("x")) == (True, False)


def test_every_problem_is_a_line_that_begins_with_its_place(write: Write) -> None:
    path = write("a.json", b'{"properties": {"a": {"type": "x"},\n "b": {"minimum": "y"}}}')
    with pytest.raises(UnusableFile) as raised:
        read_schema(SchemaFiles(), str(path))
    lines = lines_of(raised.value.report)
    assert [line.removeprefix(f"{path}:")[:5] for line in lines] == ["1:31:", "2:19:"]
    assert "/properties/b/minimum: " in lines[1]


@pytest.mark.parametrize(("text", "begins"), [(b"{", ":1:1: not JSON: "), (b"{\n,", ":2:1: not JSON: ")])
def test_a_document_that_is_none_says_where(text: bytes, begins: str, write: Write) -> None:
    path = write("a.json", text)
    with pytest.raises(UnusableFile) as raised:
        read_document(str(path))
    [line] = lines_of(raised.value.report)
    assert line.startswith(f"{path}{begins}")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UnusableFile) as raised:
        read_document("/nowhere/a.json")
    assert lines_of(raised.value.report) == ["/nowhere/a.json: cannot be read: No such file or directory"]
