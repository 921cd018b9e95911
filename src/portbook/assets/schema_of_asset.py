"""Derives names of schemas and examples from file names, and the schema of an asset. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

from portbook.model import JSON, JSONObject

__all__ = [
    "ALIASES",
    "ASSET",
    "SCHEMA_REFERENCE",
    "component_of",
    "named_schema",
    "schema_name",
    "version_of",
]

# The schema that validates assets before they are sent to a backend.
ASSET: Final = "synesthetic-asset"

# Aliases of schemas.
ALIASES: Final = {"nested-synesthetic-asset": ASSET}

# An example may name its schema with this member, which no schema allows.
SCHEMA_REFERENCE: Final = "$schemaRef"

_SUFFIXES: Final = (".schema.json", ".json")


def schema_name(path: str) -> str:
    """Return the name of the schema in the file at `path`: the path below its folder, without suffix."""
    suffix = next((suffix for suffix in _SUFFIXES if path.endswith(suffix)), "")
    return path.removesuffix(suffix)


def component_of(path: str) -> str:
    """Return the component of the example at `path`: its file name up to the first dot."""
    return PurePosixPath(path).name.split(".", 1)[0]


def named_schema(asset: JSON, path: str, known: Collection[str]) -> str:
    """Return the name of the schema that an asset is meant for; `known` are the existing names.

    1. From its member `schema`.
    2. From its member `$schemaRef`: the last part of that address, without suffix.
    3. From its file name: `tone.json`, `tone.valid.json` and `Tone_Example.json` are all meant for `tone`.
       Where no known schema matches, the name up to its first dot.
    """
    if isinstance(asset, dict):
        for member in ("schema", SCHEMA_REFERENCE):
            said = asset.get(member)
            if isinstance(said, str) and (name := _last_part(said, known)):
                return name
    folded = {_fold(name): name for name in sorted(known, reverse=True)}
    for name in _candidates(path):
        if name in known:
            return name
        if _fold(name) in folded:
            return folded[_fold(name)]
    return component_of(path)


def _last_part(address: str, known: Collection[str]) -> str:
    """Return the schema's name from a name, a path or a URL."""
    if address in known:
        return address
    path = unquote(re.split(r"[?#]", address, maxsplit=1)[0])
    return schema_name(PurePosixPath(path).name)


def _candidates(path: str) -> Iterator[str]:
    stem = schema_name(path)
    yield stem
    name = PurePosixPath(stem).name
    yield name
    yield name.split(".", 1)[0]
    yield name.split("_", 1)[0]


def _fold(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


# The version of a schema: what it says, or what the path of its `$id` says.

_VERSION: Final = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.-]+)?)", re.ASCII)


def version_of(document: JSONObject) -> str:
    """Return the `version` of a schema, or the one in the path of its `$id`; empty for none."""
    version = document.get("version")
    if isinstance(version, str | int | float) and not isinstance(version, bool):
        return str(version)
    identifier = document.get("$id")
    parts = identifier.split("/")[:-1] if isinstance(identifier, str) else []
    return next((found[1] for part in reversed(parts) if (found := _VERSION.fullmatch(part))), "")
