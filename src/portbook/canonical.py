"""Canonical JSON bytes and fingerprints.

One strict writer for everything that leaves as JSON. Python values that JSON cannot hold (NaN, infinities,
sets, lone surrogates, keys that are not strings) raise `NotJSON`; of what is not JSON's own, only an enum's
value and a UUID's text are written. Integers are exact, up to the 4,300 digits that the parser takes too.

The canonical form is compact, with sorted keys. Its length is that of any compact form, so a byte count
needs no sorting. Pure: no I/O.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any, cast

import orjson

__all__ = ["NotJSON", "canonical_bytes", "fingerprint", "is_same_json", "json_bytes"]

# What orjson would otherwise write in a form of its own choosing is handed back to us, and refused.
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_SORTED = _STRICT | orjson.OPT_SORT_KEYS

_SCALARS = frozenset({str, int, float, bool, type(None)})

# Below the recursion limit of orjson (254) and of CPython; the parser stops at 201.
_MAX_DEPTH = 250

# A value that holds itself, twice, would double at each level of the walk.
_MAX_PARTS = 4_000_000


class NotJSON(ValueError):
    """A Python value that JSON cannot hold."""


def json_bytes(value: Any) -> bytes:
    """Return `value` as compact JSON.

    Raises `NotJSON` where JSON has no such value.
    """
    try:
        encoded = orjson.dumps(value, None, _STRICT)
    except orjson.JSONEncodeError as error:
        return _write_exactly(value, str(error), sort=False)
    return encoded if b"null" not in encoded else _without_nan(encoded, value)


def canonical_bytes(value: Any) -> bytes:
    """Return `value` as compact JSON with sorted keys: equal values give equal bytes.

    Raises `NotJSON` where JSON has no such value.
    """
    try:
        encoded = orjson.dumps(value, None, _SORTED)
    except orjson.JSONEncodeError as error:
        return _write_exactly(value, str(error), sort=True)
    return encoded if b"null" not in encoded else _without_nan(encoded, value)


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether JSON would write two values, of which it is known that it can, in the same way."""
    try:
        return orjson.dumps(one, None, _SORTED) == orjson.dumps(other, None, _SORTED)
    except orjson.JSONEncodeError:
        return canonical_bytes(one) == canonical_bytes(other)


def fingerprint(value: Any) -> str:
    """Return the sha256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def _without_nan(encoded: bytes, value: Any) -> bytes:
    # orjson writes NaN and the infinities as null. What is read back equal had none; only the rest, a tuple
    # for one, is walked in Python, at three times the cost.
    if orjson.loads(encoded) != value:
        _require_json(value)
    return encoded


def _write_exactly(value: Any, problem: str, *, sort: bool) -> bytes:
    """Write what orjson did not: integers from 2^64 on. json takes them but checks less, so we do."""
    if "Integer exceeds 64-bit range" not in problem:
        raise NotJSON("the value has a part that JSON cannot hold")
    _require_json(value)
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort
        ).encode()
    except ValueError:  # a lone surrogate, or an integer of more digits than Python writes (4,300)
        raise NotJSON("the value has a part that JSON cannot hold") from None


def _require_json(value: Any) -> None:
    """Raise `NotJSON` unless `value` is made of JSON's own types, finite numbers and string keys."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            below.extend(_parts(item))
        if not below:
            return
        if len(below) > _MAX_PARTS:
            break
        level = below
    raise NotJSON("the value is nested too deeply, or too large")


def _parts(item: Any) -> Iterable[Any]:
    """Return what `item` holds, or raise `NotJSON` where JSON has no such value."""
    kind = cast("type[object]", type(item))
    if kind is dict:
        if not all(type(key) is str for key in item):
            raise NotJSON("the value has a key that is not a string")
        return item.values()
    if kind is list or kind is tuple:
        return item
    if kind is float and not math.isfinite(item):
        raise NotJSON("the value has a number that is not finite")
    if kind not in _SCALARS:
        raise NotJSON("the value has a part that JSON cannot hold")
    return ()
