"""Searches for a value that the old schema allows and the new one refuses. Pure: no I/O.

Values are derived from the keywords of both schemas (limits and the values next to them, listed values, names
of properties) and tried, place by place, from the root down. A value that is found is a proof; finding none
proves nothing. The order of the search is always the same.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from portbook.assets.compat.regex_samples import sample
from portbook.assets.compat.subschemas import Place, Subschemas
from portbook.canonical import NotJSON, canonical_bytes
from portbook.model import JSON, JSONObject

__all__ = ["NOTHING", "find_witness"]

# Means that no value was found; None is a value.
NOTHING: Final = object()


class _Good(NamedTuple):
    """A value for a place, and its size in bytes."""

    value: Any
    size: int


# The limits of the search: all values, the depth, and the values at one place.
_MAX_TRIES: Final = 50_000
_MAX_DEPTH: Final = 8
_MAX_HERE: Final = 400

# The bytes of one value, and of all that are tried; checked before a value is built.
_MAX_BYTES: Final = 256 * 1024
_MAX_WORK: Final = 64 * 1024 * 1024

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

_ANYTHING: Final = _Good(None, 4)

# A property name that schemas are unlikely to have.
_UNHEARD_OF: Final = "portbook-unheard-of"


def find_witness(old: Subschemas, new: Subschemas) -> Any:
    """Return a value that `old` allows and `new` refuses, or `NOTHING`."""
    search = _Search(old, new)
    for value, _ in search.suggested(old.root, new.root, 0):
        if search.is_spent:
            break
        if old.whole.allows(value) and not new.whole.allows(value):
            return value
    return NOTHING


class _Search:
    def __init__(self, old: Subschemas, new: Subschemas) -> None:
        self._old = old
        self._new = new
        self._tries = 0
        self._work = 0
        self._good: dict[Place, _Good | None] = {}
        self._found: dict[tuple[Place, Place], _Good | None] = {}

    @property
    def is_spent(self) -> bool:
        """Return whether the limit of the search is reached."""
        return self._tries >= _MAX_TRIES or self._work >= _MAX_WORK

    def suggested(self, old: Place, new: Place, depth: int) -> Iterator[_Good]:
        """Yield distinct values for one place, simple ones first."""
        seen: set[bytes] = set()
        for value in self._all(old, new, depth):
            self._tries += 1
            try:
                key = canonical_bytes(value)
            except NotJSON:
                continue
            self._work += len(key)
            if key not in seen and len(key) <= _MAX_BYTES:
                seen.add(key)
                yield _Good(value, len(key))
            if len(seen) >= _MAX_HERE or self.is_spent:
                return

    def _all(self, old: Place, new: Place, depth: int) -> Iterator[Any]:
        parts = [*_parts(self._old, old), *_parts(self._new, new)]
        yield from _scalars(parts)
        if depth < _MAX_DEPTH:
            for choice in _choices(self._old, old):
                if self._can_be("object", choice):
                    yield from self._objects(choice, new, parts, depth + 1)
                if self._can_be("array", choice):
                    yield from self._arrays(choice, new, parts, depth + 1)

    def _can_be(self, kind: str, old: Place) -> bool:
        said = [part["type"] for part in _parts(self._old, old, into_unions=False) if "type" in part]
        return all(kind == types or (isinstance(types, list) and kind in types) for types in said)

    def _witness(self, old: Place, new: Place, depth: int) -> _Good | None:
        """Return a value that the old schema allows at one place and the new one refuses."""
        if not new:
            return None  # the new schema allows any value there
        if (old, new) not in self._found:
            self._found[old, new] = None  # ends the recursion of places that lead to themselves
            goods = self.suggested(old, new, depth)
            found = (
                good
                for good in goods
                if self._old.allows(old, good.value) and not self._new.allows(new, good.value)
            )
            self._found[old, new] = next(found, None)
        return self._found[old, new]

    def _fitting(self, old: Place, depth: int) -> _Good | None:
        """Return a value that the old schema allows at one place."""
        if not old:
            return _ANYTHING
        if old not in self._good:
            self._good[old] = None  # ends the recursion of a place that leads to itself
            goods = self.suggested(old, (), depth)
            self._good[old] = next((good for good in goods if self._old.allows(old, good.value)), None)
        return self._good[old]

    def _arrays(self, old: Place, new: Place, parts: list[JSONObject], depth: int) -> Iterator[Any]:
        lengths = {0, 1, 2, *_around(parts, "minItems", "maxItems")}
        lengths |= {len(cast("list[Any]", part.get("prefixItems", []))) for part in parts}
        for length in sorted(length for length in lengths if 0 <= length <= _MAX_BYTES):
            goods = [self._fitting(self._old.item_at(old, at), depth) for at in range(min(length, 32))]
            items = [good.value for good in goods if good is not None]
            sizes = [good.size + 1 for good in goods if good is not None]
            if len(items) < len(goods) or sum(sizes) + sum(sizes[-1:]) * (length - len(items)) > _MAX_BYTES:
                continue
            items += items[-1:] * (length - len(items))
            yield items
            yield [*items, *items]
            distinct = [item + at if type(item) is int else item for at, item in enumerate(items)]
            yield distinct
            for at in range(min(length, 4)):
                found = self._witness(self._old.item_at(old, at), self._new.item_at(new, at), depth)
                if found is not None:
                    yield [*items[:at], found.value, *items[at + 1 :]]

    def _objects(self, old: Place, new: Place, parts: list[JSONObject], depth: int) -> Iterator[Any]:
        needed = _names(_parts(self._old, old, into_unions=False), "required")
        base: dict[str, Any] = {}
        size = 0
        for name in needed:
            good = self._fitting(self._old.property_at(old, name), depth)
            size += 0 if good is None else len(name) + good.size
            if good is None or size > _MAX_BYTES:
                return
            base[name] = good.value
        yield dict(base)
        whole = dict(base)
        for name in [*_all_names(parts), _UNHEARD_OF]:
            below, beside = self._old.property_at(old, name), self._new.property_at(new, name)
            fitting = self._fitting(below, depth)
            if name not in base and fitting is not None:
                size += len(name) + fitting.size
                if size <= _MAX_BYTES:
                    whole[name] = fitting.value
                yield {**base, name: fitting.value}
            found = self._witness(below, beside, depth)
            if found is not None:
                yield {**base, name: found.value}
        yield whole
        yield {name: value for name, value in whole.items() if name != _UNHEARD_OF}
        yield from self._crowds(old, parts, base, depth)
        for pattern in _names(parts, "patternProperties"):
            name = sample(pattern)
            if name is not None:
                below, beside = self._old.property_at(old, name), self._new.property_at(new, name)
                goods = (self._witness(below, beside, depth), self._fitting(below, depth))
                yield from ({**base, name: good.value} for good in goods if good is not None)

    def _crowds(
        self, old: Place, parts: list[JSONObject], base: dict[str, Any], depth: int
    ) -> Iterator[dict[str, Any]]:
        """Yield objects with as many properties as the limits on their number."""
        rest = self._fitting(self._old.property_at(old, _UNHEARD_OF), depth)
        for count in sorted(_around(parts, "minProperties", "maxProperties")):
            more = count - len(base)
            if rest is not None and more > 0 and more * (len(_UNHEARD_OF) + rest.size) <= _MAX_BYTES:
                yield {**base, **{f"{_UNHEARD_OF}-{at}": rest.value for at in range(more)}}


def _parts(schema: Subschemas, place: Place, *, into_unions: bool = True) -> list[JSONObject]:
    return schema.members_at(schema.spread(place, into_unions=into_unions))


def _choices(schema: Subschemas, place: Place) -> Iterator[Place]:
    """Yield the place itself, and the place with each branch of its unions."""
    yield place
    for path in schema.spread(place):
        found = schema.at(path)
        if isinstance(found, dict):
            part = cast("JSONObject", found)
            for keyword in ("anyOf", "oneOf"):
                branches = cast("list[JSON]", part.get(keyword, []))
                yield from ((*place, (*path, keyword, at)) for at in range(len(branches)))


def _names(parts: list[JSONObject], keyword: str) -> list[str]:
    found = {name for part in parts for name in cast("list[str] | JSONObject", part.get(keyword, []))}
    return sorted(found)


def _all_names(parts: list[JSONObject]) -> list[str]:
    """Return the names of properties that occur in these parts."""
    keywords = ("properties", "required", "dependentRequired", "dependentSchemas")
    return sorted({name for keyword in keywords for name in _names(parts, keyword)})


def _around(parts: list[JSONObject], *keywords: str) -> set[int]:
    """Return the limits that these keywords set, and the integers next to them."""
    limits = [part[keyword] for part in parts for keyword in keywords if isinstance(part.get(keyword), int)]
    return {cast("int", limit) + step for limit in limits for step in (-1, 0, 1)}


def _scalars(parts: list[JSONObject]) -> Iterator[JSON]:
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
    for length in sorted(_around(parts, "minLength", "maxLength")):
        if 0 <= length <= _MAX_BYTES:
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
