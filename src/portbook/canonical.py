"""Canonical JSON bytes, fingerprints and digests.

One strict writer for all JSON output. Python values that JSON cannot hold (NaN, infinities, sets, lone
surrogates, keys that are not strings) raise `NotJSON`. Of types that are not JSON's own, only enums (as their
value) and UUIDs (as text) are written. Integers are exact, up to the 4,300 digits that the parser accepts.

The canonical form is compact, with sorted keys. Every compact form has the same length, so a byte count needs
no sorting.

Digests that third parties recompute use the form of RFC 8785 (JSON Canonicalization Scheme) instead: keys in
the order of their UTF-16 code units, numbers as ECMAScript writes doubles. An integer that would be rounded
raises `NotJSON`: two different values must not have the same digest. Pure: no I/O.
"""

from __future__ import annotations

import json
import marshal
import math
import re
from collections.abc import Iterable
from typing import Any, Final, cast

import orjson

from portbook.text.late_pattern import late_pattern
from portbook.text.sha256 import sha256

__all__ = [
    "STRICT",
    "NotJSON",
    "NotWritten",
    "as_written",
    "canonical_bytes",
    "canonical_part",
    "digest",
    "fingerprint",
    "is_same_json",
    "jcs_bytes",
    "json_bytes",
    "rewritten_bytes",
    "tight_copy",
    "without_nan",
    "write",
]

# orjson would write these types in a form of its own; passed through, they are refused.
STRICT: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_SORTED = STRICT | orjson.OPT_SORT_KEYS

# Where our canonical form may differ from RFC 8785's: a float, an integer of 16 digits or more, and a key
# with a character beyond the basic plane. A false match inside a string costs time only.
_NUMBER: Final = late_pattern(rb"[:\[,]-?(?:[0-9]{16}|[0-9]+[.eE])")
# How numbers begin in JSON whose digits are all 0: few values have any, and this search takes a tenth.
_DIGITS: Final = bytes.maketrans(b"123456789-[", b"0000000000,")
_NUMBERS: Final = (b'":0', b",0")
_BEYOND: Final = late_pattern(rb"[\xf0-\xf4]")

# A double that is not finite, as marshal writes it: its exponent is all ones. A false match costs time only.
_NOT_FINITE: Final = late_pattern(rb"g.{6}[\xf0-\xff][\x7f\xff]", re.DOTALL)
# Its last two bytes, if f0 to fe are the same and 7f is ff: no text has them. This search takes a tenth.
_EXPONENTS: Final = bytes.maketrans(bytes(range(0xF1, 0xFF)) + b"\x7f", b"\xf0" * 14 + b"\xff")
_ENDS: Final = (b"\xf0\xff", b"\xff\xff")
_NO_REFERENCES: Final = 2  # the last version of the format without references to earlier parts

# Every integer up to here is exact as a double.
_EXACT: Final = 2**53

_SCALARS = frozenset({str, int, float, bool, type(None)})

# Below the recursion limit of orjson (254) and of CPython; the parser stops at 201.
_MAX_DEPTH = 250

# A value that contains itself twice would double at each level of the walk.
_MAX_PARTS = 4_000_000


# The writer itself, for values whose parts were written before: `write(value, None, STRICT)`. It raises
# `NotWritten` for what `json_bytes` may still write, an integer from 2^64 on.
write: Final = orjson.dumps
NotWritten: Final = orjson.JSONEncodeError


class NotJSON(ValueError):
    """A Python value that JSON cannot hold."""


def tight_copy(data: bytes) -> bytes:
    """Return a copy of JSON bytes that are kept for a while.

    The encoder's own bytes hold the whole buffer that they were written to: up to ten times their length.
    """
    return bytes(memoryview(data))


def json_bytes(value: Any) -> bytes:
    """Return `value` as compact JSON.

    Raises `NotJSON` where JSON has no such value.
    """
    try:
        encoded = orjson.dumps(value, None, STRICT)
    except orjson.JSONEncodeError as error:
        return _write_exactly(value, str(error), sort=False)
    # Not `in`: that takes five times as long, for it tries the bytes as a number first.
    return encoded if encoded.find(b"null") < 0 else without_nan(encoded, value)


def rewritten_bytes(value: Any) -> bytes:
    """Return `value` as compact JSON; `json_bytes` has written all its parts, so it is not searched again."""
    try:
        return orjson.dumps(value, None, STRICT)
    except orjson.JSONEncodeError:  # an integer from 2^64 on
        return json_bytes(value)


def as_written(data: bytes) -> Any:
    """Return what the writers above write as `data`, which is JSON: a part that need not be written again."""
    return orjson.Fragment(data)


def canonical_bytes(value: Any) -> bytes:
    """Return `value` as compact JSON with sorted keys: equal values give equal bytes.

    Raises `NotJSON` where JSON has no such value.
    """
    try:
        encoded = orjson.dumps(value, None, _SORTED)
    except orjson.JSONEncodeError as error:
        return _write_exactly(value, str(error), sort=True)
    return encoded if encoded.find(b"null") < 0 else without_nan(encoded, value)


def canonical_part(value: Any) -> bytes:
    """Return `value` as `canonical_bytes` does, where these bytes are a part of those of a whole, too.

    Raises `NotWritten` where they may not be: an integer from 2^64 on changes how the floats beside it are
    written. And `NotJSON` where JSON has no such value.
    """
    encoded = orjson.dumps(value, None, _SORTED)
    return encoded if encoded.find(b"null") < 0 else without_nan(encoded, value)


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values, both known to be valid JSON, have the same canonical form."""
    try:
        return orjson.dumps(one, None, _SORTED) == orjson.dumps(other, None, _SORTED)
    except orjson.JSONEncodeError:
        return canonical_bytes(one) == canonical_bytes(other)


def fingerprint(value: Any) -> str:
    """Return the sha256 of the canonical form, in hexadecimal."""
    return sha256(canonical_bytes(value)).hexdigest()


def jcs_bytes(value: Any) -> bytes:
    """Return `value` in the canonical form of RFC 8785.

    Raises `NotJSON` where JSON has no such value, or where one of its integers would be rounded.
    """
    encoded = canonical_bytes(value)
    if not _may_differ(encoded):
        return encoded
    written: list[str] = []
    _write_jcs(json.loads(encoded), written)  # parsed back, so that every part is of JSON's own types
    return "".join(written).encode()


def digest(value: Any) -> str:
    """Return the sha256 of RFC 8785's form, in hexadecimal.

    Raises `NotJSON` where that form has no such value.
    """
    return sha256(jcs_bytes(value)).hexdigest()


def _may_be_infinite(written: bytes) -> bool:
    find = written.translate(_EXPONENTS).find
    return (find(_ENDS[0]) >= 0 or find(_ENDS[1]) >= 0) and _NOT_FINITE.search(written) is not None


def _may_differ(encoded: bytes) -> bool:
    find = encoded.translate(_DIGITS).find
    has_numbers = find(_NUMBERS[0]) >= 0 or find(_NUMBERS[1]) >= 0
    return (
        encoded[:1] in b"-0123456789"
        or (has_numbers and _NUMBER.search(encoded) is not None)
        or (not encoded.isascii() and _BEYOND.search(encoded) is not None)
    )


def _write_jcs(value: Any, written: list[str]) -> None:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        before = "{"
        for key in sorted(members, key=lambda name: name.encode("utf-16-be")):
            written.append(f"{before}{_text(key)}:")
            _write_jcs(members[key], written)
            before = ","
        written.append("}" if members else "{}")
    elif isinstance(value, list):
        before = "["
        for item in cast("list[Any]", value):
            written.append(before)
            _write_jcs(item, written)
            before = ","
        written.append("]" if value else "[]")
    elif isinstance(value, str):
        written.append(_text(value))
    elif value is None or isinstance(value, bool):
        written.append("null" if value is None else "true" if value else "false")
    else:
        written.append(_number(value))


def _text(text: str) -> str:
    # Escapes exactly what RFC 8785 (3.2.2.2) requires, in its form.
    return json.dumps(text, ensure_ascii=False)


def _number(value: float) -> str:
    """Return a number as RFC 8785 (3.2.2.3) writes it: all numbers are doubles."""
    if not isinstance(value, int):
        return _double(value)
    if abs(value) <= _EXACT:
        return str(value)
    import decimal  # late: it takes 5 ms, and such numbers are rare

    try:
        written = _double(float(value))
    except OverflowError:
        written = "0"
    if decimal.Decimal(written) != value:
        raise NotJSON("the value has an integer beyond 2^53 that would be rounded; write it as a string")
    return written


def _double(value: float) -> str:
    """Return a double as ECMAScript's Number::toString writes it."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    leading = (whole + fraction).lstrip("0")
    # The value is 0.digits times ten to the power of `point`. Both languages find the shortest digits.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(leading))
    digits = leading.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


def without_nan(encoded: bytes, value: Any) -> bytes:
    """Return `encoded`, which is `value` as JSON and contains the word null.

    Raises `NotJSON` where a null stands for a number that is not finite.
    """
    # orjson writes NaN and the infinities as null. Python's own writer keeps the bits of every double, where
    # they show, at half the cost of the next step: a value that is equal when parsed back had none. Only
    # other values, such as those with tuples, are walked in Python, at three times that.
    try:
        is_finite = not _may_be_infinite(marshal.dumps(value, _NO_REFERENCES))
    except ValueError:  # a part that only orjson writes, such as an enum
        is_finite = False
    if not is_finite and orjson.loads(encoded) != value:
        _require_json(value)
    return encoded


def _write_exactly(value: Any, problem: str, *, sort: bool) -> bytes:
    """Write integers from 2^64 on with json, which accepts more than JSON allows, so validate first."""
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
    """Raise `NotJSON` unless `value` consists of JSON's own types, finite numbers and string keys."""
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
    """Return the members or items of `item`.

    Raises `NotJSON` where JSON has no such value.
    """
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
