"""Fetched documents in `portbook.lock`: what is kept of them, and what is no entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portbook.apis.fetched_documents import DocumentLock, LockedDocument
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME

DIGEST = "a" * 64
SHOP = LockedDocument("https://shop.example/openapi.json", "shop.json", DIGEST)
BANK = LockedDocument("https://bank.example/openapi.yaml", "apis/bank.yaml", "b" * 64)


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert DocumentLock.read(tmp_path) == DocumentLock(tmp_path)
    DocumentLock(tmp_path).with_document(SHOP).with_document(BANK).write()
    found = DocumentLock.read(tmp_path)
    assert found.documents == (BANK, SHOP)
    assert found.of_url(SHOP.url) == SHOP
    assert found.of_url("https://elsewhere.example") is None
    assert found.of_file(tmp_path / "apis" / ".." / "shop.json") == SHOP
    assert found.of_file(tmp_path / "other.json") is None


def test_the_file_is_sorted_and_one_line_each(tmp_path: Path) -> None:
    DocumentLock(tmp_path).with_document(SHOP).with_document(BANK).write()
    text = (tmp_path / LOCK_NAME).read_text()
    assert json.loads(text) == {
        "openapi": {
            BANK.file: {"url": BANK.url, "sha256": BANK.sha256},
            SHOP.file: {"url": SHOP.url, "sha256": SHOP.sha256},
        }
    }
    assert text.index(BANK.file) < text.index(SHOP.file)
    assert text.endswith("}\n")


def test_an_address_is_locked_without_its_secrets(tmp_path: Path) -> None:
    whole = "https://user:word@shop.example/openapi.json?api_key=hunter2#hunter2"
    lock = DocumentLock(tmp_path).with_document(LockedDocument(whole, SHOP.file, DIGEST))
    assert lock.documents == (SHOP,)
    assert lock.of_url("https://shop.example/openapi.json?api_key=other") == SHOP


def test_a_file_is_locked_once(tmp_path: Path) -> None:
    lock = DocumentLock(tmp_path).with_document(SHOP)
    copy = LockedDocument(SHOP.url, "new.json", DIGEST)
    assert lock.with_document(copy).documents == (copy, SHOP)
    moved = LockedDocument("https://new.example", SHOP.file, DIGEST)
    assert lock.with_document(moved).documents == (moved,)


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ("7", "/openapi/a~1b.json: must have"),
        ('{"url": "https://a.example"}', "/openapi/a~1b.json: must have"),
        ('{"url": "https://a.example", "sha256": "XYZ"}', "/openapi/a~1b.json: must have"),
        (f'{{"url": "file:///a", "sha256": "{DIGEST}"}}', "/openapi/a~1b.json/url: must be an http"),
    ],
)
def test_an_entry_that_is_none_is_refused_with_its_line(tmp_path: Path, entry: str, place: str) -> None:
    (tmp_path / LOCK_NAME).write_text(f'{{\n  "openapi": {{\n    "a/b.json": {entry}}}}}')
    with pytest.raises(BadLock) as caught:
        DocumentLock.read(tmp_path)
    assert str(caught.value).startswith(f"portbook.lock:3: {place}")
    assert str(caught.value).endswith(
        "; restore the file, or remove the section and run `portbook fetch` again"
    )
