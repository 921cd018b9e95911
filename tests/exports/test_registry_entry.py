"""What the registry would refuse is refused first."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from portbook.cli.export_bundle import archive
from portbook.exports.registry_entry import (
    BadBundleFile,
    BadEntry,
    PublishedBundle,
    PyPIPackage,
    RegistryEntry,
    Remote,
)

REMOTE = Remote("https://mcp.example.com/mcp", has_key=True)


def made(**more: Any) -> RegistryEntry:
    plain: dict[str, Any] = {
        "name": "io.github.ada/greetings",
        "title": "Greetings",
        "description": "Says hello.",
        "version": "1.0.0",
        "remote": REMOTE,
    }
    return RegistryEntry(**{**plain, **more})


def test_a_key_is_asked_for_and_never_written_down() -> None:
    [remote] = made().document()["remotes"]  # type: ignore[misc] # a list, by the schema
    assert remote["headers"][0]["value"] == "Bearer {key}"  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("more", "begins"),
    [
        ({"name": "greetings"}, "--name"),
        ({"name": "io.github.ada/a/b"}, "--name"),
        ({"name": "-io.github/ada"}, "--name"),
        ({"name": f"io.github.ada/{'x' * 200}"}, "--name"),
        ({"description": ""}, "--description"),
        ({"description": "x" * 101}, "--description"),
        ({"title": "x" * 101}, "server.title"),
        ({"version": "latest"}, "--version"),
        ({"version": "^1.2.3"}, "--version"),
        ({"version": "1.x"}, "--version"),
        ({"version": ">=1.2.3"}, "--version"),
        ({"repository": "git@github.com:ada/greetings"}, "--repository"),
        ({"remote": Remote("http://127.0.0.1:8765/mcp", has_key=False)}, "--remote"),
        ({"remote": Remote("https://me:pw@example.com/mcp", has_key=False)}, "--remote"),
        ({"bundle": PublishedBundle("file:///x.mcpb", "1.0.0", "0" * 64)}, "--bundle-url"),
        ({"bundle": PublishedBundle("https://x.example/x.mcpb", "2.0.0", "0" * 64)}, "--bundle: it is of"),
        ({"remote": Remote("https://[x", has_key=False)}, "--remote"),
        ({"repository": "https://exa mple.com"}, "--repository"),
        ({"pypi": PyPIPackage("greetings", ())}, "--pypi"),
        ({"pypi": PyPIPackage("greetings", ("tools.py",))}, "--pypi"),
        ({"pypi": PyPIPackage("greetings", ("./tools",))}, "--pypi"),
        ({"remote": None}, "say where"),
    ],
)
def test_a_mistake_is_told_with_its_option(more: dict[str, Any], begins: str) -> None:
    with pytest.raises(BadEntry, match=rf"\A{begins}"):
        made(**more).document()


@pytest.mark.parametrize("version", ["1.0.0", "1.0", "2.1.0-alpha", "1.0.0rc1", "2026.8.31", "1.2.3+build.5"])
def test_a_version_of_one_release_is_taken(version: str) -> None:
    assert made(version=version).document()["version"] == version


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://github.com/ada/greetings", "github"),
        ("https://git.example.org/ada", "git.example.org"),
    ],
)
def test_a_repository_has_the_name_of_its_host(url: str, source: str) -> None:
    assert made(repository=url).document()["repository"] == {"url": url, "source": source}


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
