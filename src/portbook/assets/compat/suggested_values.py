"""Values that keywords of a schema suggest: listed ones, limits, texts of patterns. Pure: no I/O."""

from __future__ import annotations

import contextlib
import importlib
import math
import warnings
from collections.abc import Iterator
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject

__all__ = ["MAX_BYTES", "around", "sample", "scalars"]


# The bytes of one value; checked before it is built.
MAX_BYTES: Final = 256 * 1024

# Longer integers than in any real schema are not used in arithmetic.
_MAX_BITS: Final = 4_096

_PLAIN: Final[tuple[JSON, ...]] = (None, True, False, 0, 1, -1, 2, 0.5, "", "a", "A b-1", [], {})

_FORMATS: Final = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "P1D",
    "email": "a@example.org",
    "idn-email": "a@example.org",
    "hostname": "example.org",
    "idn-hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/a",
    "uri-reference": "/a",
    "iri": "https://example.org/a",
    "iri-reference": "/a",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uri-template": "/{a}",
    "json-pointer": "/a",
    "relative-json-pointer": "0/a",
    "regex": "a",
}


def around(parts: list[JSONObject], *keywords: str) -> set[int]:
    """Return the limits that these keywords set, and the integers next to them."""
    limits = [part[keyword] for part in parts for keyword in keywords if isinstance(part.get(keyword), int)]
    return {cast("int", limit) + step for limit in limits for step in (-1, 0, 1)}


def scalars(parts: list[JSONObject]) -> Iterator[JSON]:
    """Yield values that are no containers, unless they are listed, simple ones first."""
    for part in parts:
        if "const" in part:
            yield part["const"]
        yield from cast("list[JSON]", part.get("enum", []))
        yield from (
            cast("list[JSON]", part.get("examples", [])) if isinstance(part.get("examples"), list) else []
        )
        if "default" in part:
            yield part["default"]
    yield from _PLAIN
    yield from _numbers(parts)
    yield from _texts(parts)


def _numbers(parts: list[JSONObject]) -> Iterator[JSON]:
    limits = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    for part in parts:
        for keyword in limits:
            limit = part.get(keyword)
            if isinstance(limit, int | float) and not isinstance(limit, bool):
                yield from _near(limit)


def _near(limit: float) -> Iterator[JSON]:
    """Yield a limit and numbers next to it that JSON can hold."""
    yield limit
    if isinstance(limit, int) and limit.bit_length() > _MAX_BITS:
        return
    if isinstance(limit, float) and limit.is_integer():
        yield int(limit)
    numbers: list[float] = [limit + 1, limit - 1, limit * 2, limit * 3]
    with contextlib.suppress(OverflowError):  # an integer beyond the range of floats
        numbers += [limit + 0.5, limit - 0.5]
    yield from (number for number in numbers if isinstance(number, int) or math.isfinite(number))


def _texts(parts: list[JSONObject]) -> Iterator[JSON]:
    for length in sorted(around(parts, "minLength", "maxLength")):
        if 0 <= length <= MAX_BYTES:
            yield "a" * length
    for part in parts:
        said = part.get("format")
        if isinstance(said, str) and said in _FORMATS:
            yield _FORMATS[said]
        pattern = part.get("pattern")
        if isinstance(pattern, str):
            for more in (0, 1, 5):
                made = sample(pattern, more)
                if made is not None:
                    yield made


# A text that a regular expression probably matches; the caller has to try it.


# Counted repetitions turn short patterns into long texts.
_MAX_TEXT: Final = 2_000

_CLASSES: Final = {
    "CATEGORY_DIGIT": "0",
    "CATEGORY_WORD": "a",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_NOT_WORD": "-",
    "CATEGORY_NOT_SPACE": "a",
}


def sample(pattern: str, more: int = 0) -> str | None:
    """Return a text that `pattern` probably matches, with each repetition `more` times beyond its minimum.

    A range contributes its first character, or its last where `more` is above 0.

    Return None for a pattern that Python cannot parse, or whose text would be too long.
    """
    parser: Any = importlib.import_module("re._parser")  # Python's own parser, which has no public name
    try:
        with warnings.catch_warnings(action="ignore"):  # about syntax that a later Python may change
            pieces = parser.parse(pattern)
        text = "".join(_piece(str(kind), given, more) for kind, given in pieces)
    except (_SampleTooLong, RecursionError, parser.error, OverflowError):
        return None
    return text if len(text) <= _MAX_TEXT else None


class _SampleTooLong(Exception):
    """The text would be too long."""


def _piece(kind: str, given: Any, more: int) -> str:
    if kind == "LITERAL":
        return chr(given)
    if kind == "NOT_LITERAL":
        return "a" if given != ord("a") else "b"
    if kind == "ANY":
        return "a"
    if kind == "IN":
        return _one_of(given, is_last=more > 0)
    if kind == "BRANCH":
        return _all(given[1][0], more)
    if kind == "SUBPATTERN":
        return _all(given[-1], more)
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = given
        times = min(least + more, int(most))
        text = _all(inner, more)
        if len(text) * times > _MAX_TEXT:
            raise _SampleTooLong
        return text * times
    return ""  # an anchor, or syntax that linear-time patterns do not have


def _all(pieces: Any, more: int) -> str:
    return "".join(_piece(str(kind), given, more) for kind, given in pieces)


def _one_of(choices: Any, *, is_last: bool = False) -> str:
    if str(choices[0][0]) == "NEGATE":
        refused = _one_of(choices[1:])
        return next(character for character in "a0- ~" if character != refused)
    kind, given = choices[0]
    if str(kind) == "RANGE":
        return chr(given[1] if is_last else given[0])
    return _CLASSES.get(str(given), "a") if str(kind) == "CATEGORY" else chr(given)
