"""The version of a schema: what it says, or what the path of its `$id` says. Pure: no I/O."""

from __future__ import annotations

import re
from typing import Final

from portbook.model import JSONObject

__all__ = ["version_of"]

_VERSION: Final = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.-]+)?)", re.ASCII)


def version_of(document: JSONObject) -> str:
    """Return the `version` of a schema, or the one in the path of its `$id`; empty for none."""
    version = document.get("version")
    if isinstance(version, str | int | float) and not isinstance(version, bool):
        return str(version)
    identifier = document.get("$id")
    parts = identifier.split("/")[:-1] if isinstance(identifier, str) else []
    return next((found[1] for part in reversed(parts) if (found := _VERSION.fullmatch(part))), "")
