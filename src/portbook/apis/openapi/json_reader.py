"""Reads a JSON document of a vendor: strictly, but for values that no program can hold.

One number or one character somewhere in an example must not cost the whole document. A number that is too
large for a double is null, as `.inf` in YAML, and half of a surrogate pair is the character U+FFFD. All other
rules of `wire.parsing` apply. Pure: no I/O.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, cast

from portbook.canonical import json_bytes
from portbook.errors import Refused
from portbook.model import JSON
from portbook.wire.parsing import parse

__all__ = ["parse_json"]

# Python parses no longer integer, and neither does `wire.parsing`.
_MAX_DIGITS: Final = 4_300
# What is left of a surrogate pair whose other half is missing.
_HALF: Final = re.compile("[\ud800-\udfff]")


class _StillNotJSON(ValueError):
    """A rule is broken that is not about a value that no program can hold."""


def parse_json(data: bytes) -> JSON:
    """Return the values of a JSON document.

    Raises `Refused` where it is none.
    """
    try:
        return parse(data)
    except Refused as refusal:
        try:
            # The rules once more, for what is not about values: how deep they nest, for example.
            return parse(json_bytes(_read(data)))
        except (ValueError, RecursionError, Refused):
            raise refusal from None


def _read(data: bytes) -> JSON:
    return json.loads(
        data.decode(),
        parse_float=_number,
        parse_int=lambda digits: int(digits) if len(digits) <= _MAX_DIGITS else None,
        parse_constant=_refuse,
        object_pairs_hook=_object,
    )


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _refuse(_: str) -> None:
    raise _StillNotJSON


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {cast("str", _whole(name)): _whole(value) for name, value in pairs}
    if len(found) < len(pairs):
        raise _StillNotJSON
    return found


def _whole(value: Any) -> Any:
    """Return a text, or a list with its texts, without halves of surrogate pairs."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[Any]", value)]
    return value
