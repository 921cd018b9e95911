"""Names of schemas and examples, from their file names, and versions of schemas. Pure: no I/O."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from portbook.model import JSONObject

__all__ = ["ALIASES", "ASSET", "component_of", "schema_name", "version_of"]

# The schema that validates assets before they are sent to a backend.
ASSET: Final = "synesthetic-asset"

# Aliases of schemas.
ALIASES: Final = {"nested-synesthetic-asset": ASSET}

_SUFFIXES: Final = (".schema.json", ".json")


def schema_name(path: str) -> str:
    """Return the name of the schema in the file at `path`: the path below its folder, without suffix."""
    suffix = next((suffix for suffix in _SUFFIXES if path.endswith(suffix)), "")
    return path.removesuffix(suffix)


def component_of(path: str) -> str:
    """Return the component of the example at `path`: its file name up to the first dot."""
    return PurePosixPath(path).name.split(".", 1)[0]


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
