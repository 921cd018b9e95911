"""Single schema files: what they refer to is found, and nothing else is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.assets import schema_files
from portbook.assets.json_files import CannotRead, Found
from portbook.assets.schema_files import SchemaFiles, SchemaFolder
from portbook.schema.engine import BadSchema
from support.asset_samples import Write


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The folders that are looked through, and whether all below them is too."""
    looked: list[tuple[str, bool]] = []

    def json_files(folder: Path, *, is_deep: bool = True) -> Iterator[Found]:
        looked.append((folder.name, is_deep))
        return real(folder, is_deep=is_deep)

    real = schema_files.json_files
    monkeypatch.setattr(schema_files, "json_files", json_files)
    return looked


def allows(path: Path, value: Any, files: SchemaFiles | None = None) -> bool:
    bundle = (files or SchemaFiles()).bundle(str(path), json.loads(path.read_text()))
    return bundle.compile().allows(value)


def test_a_file_that_is_named_by_its_path_is_read_and_no_folder_is_looked_through(
    write: Write, looks: list[Any]
) -> None:
    write("here/sub/b.json", {"$ref": "../c.json"})
    write("here/c.json", {"type": "integer"})
    path = write("here/a.json", {"$ref": "sub/b.json"})
    assert allows(path, 1)
    assert not allows(path, "x")
    assert looks == []


def test_for_an_id_the_files_beside_are_looked_through_once_and_none_below(
    write: Write, looks: list[Any]
) -> None:
    write("here/b.json", {"$id": "https://schemas.example/b", "$ref": "c"})
    write("here/c.json", {"$id": "https://schemas.example/c", "type": "integer"})
    write("here/below/d.json", {"$id": "https://schemas.example/d"})
    write("here/text.json", b"{")
    path = write("here/a.json", {"$ref": "https://schemas.example/b"})
    files = SchemaFiles()
    assert allows(path, 1, files)
    assert not allows(path, "x", files)
    assert looks == [("here", False)]
    write("here/e.json", {"$ref": "https://schemas.example/d"})
    with pytest.raises(BadSchema):
        allows(path.with_name("e.json"), 1, files)


def test_for_an_id_the_files_below_are_looked_through_too_where_that_is_wanted(
    write: Write, looks: list[Any]
) -> None:
    write("here/below/b.json", {"$id": "https://schemas.example/b", "type": "integer"})
    path = write("here/a.json", {"$ref": "https://schemas.example/b"})
    assert not allows(path, "x", SchemaFiles(is_deep=True))
    assert looks == [("here", True)]


@pytest.mark.parametrize(
    "reference", ["../c.json", "%2e%2e/c.json", "link.json", "missing.json", "text.json"]
)
def test_nothing_outside_of_its_folder_is_read(reference: str, write: Write) -> None:
    outside = write("c.json", {"type": "integer"})
    write("here/text.json", b"{")
    path = write("here/a.json", {"$ref": reference})
    path.with_name("link.json").symlink_to(outside)
    with pytest.raises(BadSchema, match="refers to a different document"):
        allows(path, 1)


def test_a_file_of_a_library_refers_to_anything_in_it(write: Write, tmp_path: Path) -> None:
    write("s/b/c.json", {"$id": "https://schemas.example/c", "type": "integer"})
    first = write("s/a/first.json", {"$ref": "../b/c.json"})
    second = write("s/a/second.json", {"$ref": "https://schemas.example/c"})
    files = SchemaFiles(SchemaFolder(tmp_path / "s"))
    assert [allows(path, "x", files) for path in (first, second)] == [False, False]


def test_a_folder_that_cannot_be_listed_has_nothing_beside_the_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def json_files(folder: Path, *, is_deep: bool = True) -> Iterator[Found]:
        raise CannotRead("cannot be read")

    monkeypatch.setattr(schema_files, "json_files", json_files)
    assert allows(write("a.schema.json", {"type": "integer"}), 1)
    with pytest.raises(BadSchema, match="refers to a different document"):
        allows(write("b.schema.json", {"$ref": "https://schemas.example/b"}), 1)
