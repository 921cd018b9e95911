"""Artifacts and their digests: of JSON in RFC 8785's form, of anything else by its bytes."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from portbook.canonical import NotJSON
from portbook.provenance.artifacts import (
    Artifact,
    Digest,
    artifact_of,
    digest_of,
    digested_bytes,
    is_json,
)

KNOWN = "54fb66ce0aa908012dc9c432d77d16df95a3d5033a557d1c14cfc6d82a63ae34"


@pytest.mark.covers("003.provenance.digests")
def test_the_digest_of_json_is_that_of_its_canonical_form() -> None:
    value = {"key": "value", "number": 42, "nested": {"a": 1, "b": 2}}
    assert digest_of(value) == Digest("sha256", KNOWN)
    assert digest_of({"nested": {"b": 2.0, "a": 1}, "number": 42.0, "key": "value"}).value == KNOWN


@pytest.mark.parametrize(
    ("content", "media_type", "digested"),
    [
        ("done\n", "text/plain", b"done\n"),
        ("é", "text/plain", "é".encode()),
        ("done", "application/json", b'"done"'),
        (b"\x00\xff", "application/octet-stream", b"\x00\xff"),
        (b'{"b": 1, "a": 2}', "application/json", b'{"b": 1, "a": 2}'),
        ({"b": 1.0, "a": None}, "application/json", b'{"a":null,"b":1}'),
        ([True], "application/vnd.x+json; charset=utf-8", b"[true]"),
        (None, "application/json", b"null"),
    ],
)
def test_a_digest_is_of_these_bytes(content: Any, media_type: str, digested: bytes) -> None:
    assert digested_bytes(content, media_type) == digested
    made = artifact_of("a", content, is_digested=True, media_type=media_type)
    assert made.digest == Digest("sha256", hashlib.sha256(digested).hexdigest())
    assert made.size_bytes == len(digested)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("x", "text/plain"),
        (b"x", "application/octet-stream"),
        ({}, "application/json"),
        (None, "application/json"),
        (1, "application/json"),
    ],
)
def test_a_string_is_text_bytes_are_bytes_and_the_rest_is_json(content: Any, media_type: str) -> None:
    assert artifact_of("a", content, is_digested=False) == Artifact("a", media_type)


@pytest.mark.parametrize(
    ("media_type", "verdict"),
    [
        ("application/json", True),
        ("Application/JSON", True),
        ("application/json; charset=utf-8", True),
        ("application/schema+json", True),
        ("application/jsonl", False),
        ("text/plain", False),
        ("text/plain; was=application/json", False),
    ],
)
def test_media_types_of_json_are_told_from_others(media_type: str, verdict: bool) -> None:
    assert is_json(media_type) is verdict


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("", "x"), "artifact_id: must have 1 to 1000 characters"),
        (("a" * 1001, "x"), "artifact_id: must have 1 to 1000 characters"),
        (("a", ""), "media_type: must have 1 to 200 characters"),
        (("a", "x", ""), "locator: must have 1 to 4000 characters"),
        (("a", "x", None, None, None, {"role": "x" * 201}), "labels: must have 0 to 200 characters"),
    ],
)
def test_an_artifact_that_no_schema_allows_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Artifact(*given)


def test_an_integer_that_would_be_rounded_has_no_digest() -> None:
    with pytest.raises(NotJSON):
        artifact_of("a", {"id": 2**53 + 1}, is_digested=True)
    assert artifact_of("a", {"id": 2**53 + 1}, is_digested=False).digest is None
