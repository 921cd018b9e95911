"""A value that one schema allows and another refuses, looked for where their keywords say it may be.

Values are suggested by the keywords of both schemas (limits and what lies just beyond them, listed values,
names of properties) and tried, place by place, from the root down. What is found is a proof; finding nothing
is none. Always looks in the same order. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from portbook.assets.patterns import sample
from portbook.assets.places import Place, Schema
from portbook.canonical import canonical_bytes
from portbook.model import JSON, JSONObject

__all__ = ["NOTHING", "find_witness"]

# Stands for a value where none was found; None is one.
NOTHING: Final = object()

# So many values are tried at most, so deep, and so many at one place.
_MAX_TRIES: Final = 50_000
_MAX_DEPTH: Final = 8
_MAX_HERE: Final = 400

# Of a limit beyond this, what lies at it is too large to be built.
_MAX_LENGTH: Final = 10_000

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

# A name that no schema has for a property, until one does.
_UNHEARD_OF: Final = "portbook-unheard-of"


def find_witness(old: Schema, new: Schema) -> Any:
    """Return a value that `old` allows and `new` refuses, or `NOTHING`."""
    search = _Search(old, new)
    for value in search.suggested(old.root, new.root, 0):
        if search.is_spent:
            break
        if old.whole.allows(value) and not new.whole.allows(value):
            return value
    return NOTHING


class _Search:
    def __init__(self, old: Schema, new: Schema) -> None:
        self._old = old
        self._new = new
        self._tries = 0
        self._good: dict[Place, Any] = {}
        self._found: dict[tuple[Place, Place], Any] = {}

    @property
    def is_spent(self) -> bool:
        """Return whether enough was tried."""
        return self._tries >= _MAX_TRIES

    def suggested(self, old: Place, new: Place, depth: int) -> Iterator[Any]:
        """Yield values for one place, the simple ones first, none of them twice."""
        seen: set[bytes] = set()
        for value in self._all(old, new, depth):
            self._tries += 1
            key = canonical_bytes(value)
            if key not in seen:
                seen.add(key)
                yield value
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

    def _witness(self, old: Place, new: Place, depth: int) -> Any:
        """Return a value for one place that is allowed there by the old schema and not by the new."""
        if not new:
            return NOTHING  # anything is allowed there
        if (old, new) not in self._found:
            self._found[old, new] = (
                NOTHING  # where these places lead to themselves, it is looked for elsewhere
            )
            values = self.suggested(old, new, depth)
            found = (v for v in values if self._old.allows(old, v) and not self._new.allows(new, v))
            self._found[old, new] = next(found, NOTHING)
        return self._found[old, new]

    def _fitting(self, old: Place, depth: int) -> Any:
        """Return a value that the old schema allows at one place."""
        if not old:
            return None
        if old not in self._good:
            self._good[old] = NOTHING  # where this place leads to itself, it has to do without
            values = self.suggested(old, (), depth)
            self._good[old] = next((value for value in values if self._old.allows(old, value)), NOTHING)
        return self._good[old]

    def _arrays(self, old: Place, new: Place, parts: list[JSONObject], depth: int) -> Iterator[Any]:
        lengths = {0, 1, 2, *_around(parts, "minItems", "maxItems")}
        lengths |= {len(cast("list[Any]", part.get("prefixItems", []))) for part in parts}
        for length in sorted(length for length in lengths if 0 <= length <= _MAX_LENGTH):
            items = [self._fitting(self._old.item_at(old, at), depth) for at in range(min(length, 32))]
            items += items[-1:] * (length - len(items))
            if NOTHING in items:
                continue
            yield items
            yield [*items, *items]
            distinct = [item + at if type(item) is int else item for at, item in enumerate(items)]
            yield distinct
            for at in range(min(length, 4)):
                found = self._witness(self._old.item_at(old, at), self._new.item_at(new, at), depth)
                if found is not NOTHING:
                    yield [*items[:at], found, *items[at + 1 :]]

    def _objects(self, old: Place, new: Place, parts: list[JSONObject], depth: int) -> Iterator[Any]:
        needed = _names(_parts(self._old, old, into_unions=False), "required")
        base: dict[str, Any] = {
            name: self._fitting(self._old.property_at(old, name), depth) for name in needed
        }
        if any(value is NOTHING for value in base.values()):
            return
        yield dict(base)
        names = sorted({*_names(parts, "properties"), *_names(parts, "required"), _UNHEARD_OF})
        whole = dict(base)
        for name in names:
            below, beside = self._old.property_at(old, name), self._new.property_at(new, name)
            fitting = base.get(name, NOTHING)
            if fitting is NOTHING:
                fitting = self._fitting(below, depth)
            if fitting is not NOTHING:
                whole[name] = fitting
                yield {**base, name: fitting}
            found = self._witness(below, beside, depth)
            if found is not NOTHING:
                yield {**base, name: found}
        yield whole
        yield {name: value for name, value in whole.items() if name != _UNHEARD_OF}
        for count in sorted(_around(parts, "minProperties", "maxProperties")):
            more = {f"{_UNHEARD_OF}-{at}": whole.get(_UNHEARD_OF) for at in range(count - len(base))}
            if _UNHEARD_OF in whole and 0 <= count <= _MAX_LENGTH:
                yield {**base, **more}
        for pattern in _names(parts, "patternProperties"):
            name = sample(pattern)
            if name is not None:
                below, beside = self._old.property_at(old, name), self._new.property_at(new, name)
                values = (self._witness(below, beside, depth), self._fitting(below, depth))
                yield from ({**base, name: value} for value in values if value is not NOTHING)


def _parts(schema: Schema, place: Place, *, into_unions: bool = True) -> list[JSONObject]:
    found = (schema.at(path) for path in schema.spread(place, into_unions=into_unions))
    return [cast("JSONObject", part) for part in found if isinstance(part, dict)]


def _choices(schema: Schema, place: Place) -> Iterator[Place]:
    """Yield the place as it is, and with each branch of its unions."""
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


def _around(parts: list[JSONObject], *keywords: str) -> set[int]:
    """Return the limits that these keywords set, and what lies just beside them."""
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
            if isinstance(limit, int | float):
                yield from (limit, limit + 1, limit - 1, limit + 0.5, limit - 0.5, limit * 2, limit * 3)
                if isinstance(limit, float) and limit.is_integer():
                    yield int(limit)


def _texts(parts: list[JSONObject]) -> Iterator[JSON]:
    for length in sorted(_around(parts, "minLength", "maxLength")):
        if 0 <= length <= _MAX_LENGTH:
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
