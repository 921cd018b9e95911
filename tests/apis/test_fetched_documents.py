"""The files and addresses of a gateway's documents."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.fetched_documents import (
    DocumentLock,
    DocumentSource,
    LockedDocument,
    named_documents,
    read_sources,
)
from portbook.apis.table_reader import Table

URL = "https://a.example/openapi.json"


class Complaint(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Complaint(f"{'.'.join(map(str, path))} {sentence}")


def table(value: Any) -> Table:
    return Table({} if value is None else {"openapi": value}, ("http", "x"), complain)


@pytest.mark.parametrize(
    ("value", "names"),
    [(None, ()), ("a.json", ("a.json",)), (["a.json", URL], ("a.json", URL))],
    ids=str,
)
def test_one_document_or_a_list_of_them(value: Any, names: tuple[str, ...]) -> None:
    assert named_documents(table(value)) == names


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "http.x.openapi must name a document"),
        (["a.json", "a.json"], "http.x.openapi names a document twice"),
        ([f"{URL}?v=1", f"{URL}?v=2"], "http.x.openapi names addresses that differ only in their queries"),
        (7, "http.x.openapi must be a string"),
        (["a.json", 7], "http.x.openapi must be a list of strings"),
        ("", "http.x.openapi must be a string that is not empty"),
    ],
    ids=str,
)
def test_what_names_no_document_is_refused(value: Any, words: str) -> None:
    with pytest.raises(Complaint) as caught:
        named_documents(table(value))
    assert str(caught.value).startswith(words)


def test_an_address_stands_for_the_file_that_was_fetched(tmp_path: Path) -> None:
    with pytest.raises(Complaint, match="nothing is fetched at start; run `portbook fetch shop` once"):
        read_sources(table(URL), "shop", tmp_path)
    locked = LockedDocument(URL, "shop.json", "a" * 64)
    DocumentLock(tmp_path).with_document(locked).write()
    expected = [DocumentSource(URL, tmp_path / "shop.json", locked)]
    assert read_sources(table(URL), "shop", tmp_path) == expected
    assert read_sources(table("other.json"), "shop", tmp_path) == [
        DocumentSource("other.json", tmp_path / "other.json")
    ]
    [by_file] = read_sources(table("shop.json"), "shop", tmp_path)
    assert by_file.locked == locked


def test_only_a_fetched_document_is_held_to_its_digest() -> None:
    digest = hashlib.sha256(b"{}").hexdigest()
    fetched = DocumentSource(URL, Path("shop.json"), LockedDocument(URL, "shop.json", digest))
    assert fetched.problem_of(b"{}") is None
    assert "shop.json has changed since it was fetched" in (fetched.problem_of(b"{} ") or "")
    assert DocumentSource("shop.json", Path("shop.json")).problem_of(b"anything") is None
