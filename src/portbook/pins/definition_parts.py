"""The parts of a definition, and their digests. Pure: no I/O.

A part is a member of the definition as its server sent it. Parts are digested apart, so that a change of one
does not hide behind another, and a record can name both sides of it without repeating them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from portbook.canonical import canonical_bytes, fingerprint
from portbook.model import JSON, JSONObject

__all__ = ["FORMULA", "digest_of_part", "is_same_part", "parts_of"]

# Names the form of the digests. A new form needs a new number: digests of two forms never match.
FORMULA: Final = 1

# It is the key of its definition; a different name is a different definition.
_NAME: Final = "name"

# Keys of `_meta` that MCP reserves: they are about one message, and are not passed on.
_RESERVED: Final = "io.modelcontextprotocol/"
_META: Final = "_meta"


def parts_of(definition: Mapping[str, JSON]) -> JSONObject:
    """Return the parts of a definition, ordered by name; a part that is null counts as missing."""
    parts = {name: _part(name, value) for name, value in sorted(definition.items()) if name != _NAME}
    return {name: value for name, value in parts.items() if value is not None}


def digest_of_part(part: str, value: JSON) -> str | None:
    """Return the digest of one part, or None where it is missing."""
    return None if value is None else fingerprint([FORMULA, part, value])


def is_same_part(one: JSON, other: JSON) -> bool:
    """Return whether two parts are written alike, apart from the order of members."""
    return canonical_bytes(one) == canonical_bytes(other)


def _part(name: str, value: JSON) -> JSON:
    if name != _META or not isinstance(value, dict):
        return value
    kept = {key: each for key, each in value.items() if not key.startswith(_RESERVED)}
    return kept or None
