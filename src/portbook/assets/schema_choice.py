"""`named_schema`: by which schema an asset, or a file of `portbook validate`, is checked. Pure: no I/O.

Its members say so, or its file name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

from portbook.assets.schema_files import component_of, schema_name
from portbook.model import JSON

__all__ = ["SCHEMA_REFERENCE", "named_schema"]

# An example may name its schema with this member, which no schema allows.
SCHEMA_REFERENCE: Final = "$schemaRef"


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
