"""Bytes that are a bundle, and bytes that no client could install."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from portbook.exports.bundle_manifest_and_archive import archive
from portbook.exports.published_bundle import BadBundleFile, PublishedBundle

URL = "https://example.com/x.mcpb"
MANIFEST: dict[str, Any] = {
    "manifest_version": "0.4",
    "name": "x",
    "version": "1.2.0",
    "description": "x",
    "author": {"name": "Ada"},
    "server": {"type": "uv"},
}


def packed(manifest: Any) -> bytes:
    return archive({"manifest.json": json.dumps(manifest).encode()})


def test_version_and_digest_are_those_of_the_bundle() -> None:
    data = packed(MANIFEST)
    assert PublishedBundle.of(URL, data) == (PublishedBundle(URL, "1.2.0", hashlib.sha256(data).hexdigest()))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no zip archive"),
        (b"words", "no zip archive"),
        (packed(MANIFEST)[:-30], "no zip archive"),
        (packed(MANIFEST).replace(b"1.2.0", b"1.3.0"), "damaged"),
        (archive({"other.json": b"{}"}), "no manifest.json in it"),
        (archive({"manifest.json": b"{"}), "not JSON"),
        (packed([]), "no JSON object"),
        (packed({}), "no usable name"),
        (packed({**MANIFEST, "version": 1}), "no usable version"),
        (packed({**MANIFEST, "server": "x"}), "no usable server"),
    ],
)
def test_what_is_no_bundle_is_refused_with_why(data: bytes, why: str) -> None:
    with pytest.raises(BadBundleFile, match=f"--bundle: not a bundle: .*{why}.*; `portbook export mcpb`"):
        PublishedBundle.of(URL, data)
