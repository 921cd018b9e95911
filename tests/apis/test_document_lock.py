"""`portbook.lock`: what it holds, and what is not one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portbook.apis.document_lock import LOCK_NAME, BadLock, DocumentLock, LockedDocument, write_atomically

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
    "text",
    [
        "",
        "[]",
        "{}",
        '{"openapi": []}',
        '{"openapi": {"a.json": 7}}',
        '{"openapi": {"a.json": {"url": "https://a.example"}}}',
        '{"openapi": {"a.json": {"url": "https://a.example", "sha256": "XYZ"}}}',
        f'{{"openapi": {{"a.json": {{"url": "file:///a", "sha256": "{DIGEST}"}}}}}}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_lock_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_NAME).write_text(text)
    with pytest.raises(BadLock, match=r"^portbook\.lock is not as `portbook fetch` writes it; restore it"):
        DocumentLock.read(tmp_path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "it.json"
    write_atomically(target, b"old")
    assert target.stat().st_mode & 0o777 == 0o644
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"folder"):
        write_atomically(tmp_path / "folder", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "it.json"]
    assert target.read_bytes() == b"old"
