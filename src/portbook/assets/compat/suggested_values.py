"""Values that the keywords of subschemas suggest: listed ones, limits, their neighbours. Pure: no I/O."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Final, cast

from portbook.assets.compat.regex_samples import sample
from portbook.model import JSON, JSONObject

__all__ = ["MAX_BYTES", "around", "scalars"]

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
