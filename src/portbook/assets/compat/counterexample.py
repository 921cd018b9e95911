"""Searches for values that the old schema allows and the new one refuses. Pure: no I/O.

Values are derived from the keywords of both schemas (limits and the values next to them, listed values,
names of properties, texts of patterns) and tried, place by place, from the root down. A value that is found
is a proof; finding none proves nothing. Places for which the inclusion is proved are not searched. The order
is always the same.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import warnings
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from portbook.assets.compat.compatibility_proof import Inclusion
from portbook.assets.compat.pattern_comparison import Undecided
from portbook.assets.compat.subschemas import EFFORT, Place, Subschemas
from portbook.canonical import NotJSON, canonical_bytes
from portbook.errors import Finding
from portbook.model import JSON, JSONObject

__all__ = [
    "EVERY_BREAK",
    "FIRST_BREAK",
    "MAX_BYTES",
    "SearchLimits",
    "Witness",
    "around",
    "find_witnesses",
    "sample",
    "scalars",
]


class SearchLimits(NamedTuple):
    """How far a search goes."""

    tries: int
    """All values."""
    tries_at_place: int
    """The values at one place."""
    witnesses: int
    """The different breaks that are shown."""


FIRST_BREAK: Final = SearchLimits(50_000, 400, 1)
EVERY_BREAK: Final = SearchLimits(200_000, 4_000, 200)

_MAX_DEPTH: Final = 8

# The different breaks of one place that are carried on to the places above it.
_MAX_BELOW: Final = 32

# The bytes of all values that are tried; checked before a value is built.
_MAX_WORK: Final = 64 * 1024 * 1024

# A property name that schemas are unlikely to have.
_UNHEARD_OF: Final = "portbook-unheard-of"


class Witness(NamedTuple):
    """A value that the old schema allows and the new one refuses."""

    value: Any
    findings: tuple[Finding, ...]
    """What the new schema finds wrong with it."""


class _Good(NamedTuple):
    """A value for a place, and its size in bytes."""

    value: Any
    size: int


_ANYTHING: Final = _Good(None, 4)


def find_witnesses(inclusion: Inclusion, limits: SearchLimits) -> Iterator[Witness]:
    """Yield values that the old schema allows and the new one refuses: with a limit of one, the first."""
    old, new = inclusion.old, inclusion.new
    search = _Search(inclusion, limits)
    for value, _ in search.suggested(old.root, new.root, 0):
        if search.is_spent:
            return
        if old.whole.allows(value) and not new.whole.allows(value):
            yield Witness(value, new.whole.findings_of_own(value, EFFORT))
            if limits.witnesses == 1:
                return


class _Search:
    def __init__(self, inclusion: Inclusion, limits: SearchLimits) -> None:
        self._old = inclusion.old
        self._new = inclusion.new
        self._texts = inclusion.texts
        self._is_proved = inclusion.is_proved_at
        self._limits = limits
        self._tries = 0
        self._work = 0
        self._good: dict[tuple[Place, Place], _Good | None] = {}
        self._found: dict[tuple[Place, Place], list[_Good]] = {}

    @property
    def is_spent(self) -> bool:
        """Return whether the limit of the search is reached."""
        return self._tries >= self._limits.tries or self._work >= _MAX_WORK

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
            if key not in seen and len(key) <= MAX_BYTES:
                seen.add(key)
                yield _Good(value, len(key))
            if len(seen) >= self._limits.tries_at_place or self.is_spent:
                return

    def _all(self, old: Place, new: Place, depth: int) -> Iterator[Any]:
        parts = [*_parts(self._old, old), *_parts(self._new, new)]
        yield from scalars(parts)
        for choice in _choices(self._old, old):
            yield from self._matching(choice, new)
        if depth < _MAX_DEPTH:
            for choice in _choices(self._old, old):
                if self._can_be("object", choice):
                    yield from self._objects(choice, new, parts, depth + 1)
                if self._can_be("array", choice):
                    yield from self._arrays(choice, new, parts, depth + 1)

    def _can_be(self, kind: str, old: Place) -> bool:
        said = [part["type"] for part in _parts(self._old, old, into_unions=False) if "type" in part]
        return all(kind == types or (isinstance(types, list) and kind in types) for types in said)

    def _matching(self, old: Place, new: Place) -> Iterator[str]:
        """Yield texts that the old patterns match: one that each new pattern refuses, and any one."""
        known = self._texts.automata(_parts(self._old, old, into_unions=False))
        wanted = [part["pattern"] for part in _parts(self._new, new) if "pattern" in part]
        for pattern in (*wanted, None) if known else wanted:
            with contextlib.suppress(Undecided):
                outside = None if pattern is None else self._texts.automaton("pattern", pattern)
                text = self._texts.find(known, outside)
                yield from [] if text is None else [text]

    def _witnesses(self, old: Place, new: Place, depth: int) -> list[_Good]:
        """Return values that the old schema allows at one place and the new one refuses."""
        if not new:
            return []  # the new schema allows any value there
        if (old, new) not in self._found:
            self._found[old, new] = []  # ends the recursion of places that lead to themselves
            if not self._is_proved(new, old):
                self._found[old, new] = self._distinct(old, new, depth)
        return self._found[old, new]

    def _distinct(self, old: Place, new: Place, depth: int) -> list[_Good]:
        """Return a value for each keyword of the new schema that refuses one, and one of its own if any."""
        kept: list[_Good] = []
        shown: set[tuple[str, str]] = set()
        alone: set[tuple[str, str]] = set()
        for good in self.suggested(old, new, depth):
            if not self._old.allows(old, good.value) or self._new.allows(new, good.value):
                continue
            if self._limits.witnesses == 1:
                return [good]
            causes = self._new.causes(new, good.value)
            if causes - shown or (len(causes) == 1 and causes - alone):
                kept.append(good)
                shown |= causes
                alone |= causes if len(causes) == 1 else frozenset()
            if len(kept) >= _MAX_BELOW:
                break
        return kept

    def _fitting(self, old: Place, new: Place, depth: int) -> _Good | None:
        """Return a value that the old schema allows at one place; one that the new one allows, if any."""
        if not old and not new:
            return _ANYTHING
        if (old, new) not in self._good:
            self._good[old, new] = None  # ends the recursion of a place that leads to itself
            first: _Good | None = None
            for good in self.suggested(old, (), depth):
                if self._old.allows(old, good.value):
                    first = first or good
                    if self._new.allows(new, good.value):
                        first = good
                        break
            self._good[old, new] = first
        return self._good[old, new]

    def _arrays(self, old: Place, new: Place, parts: list[JSONObject], depth: int) -> Iterator[Any]:
        lengths = {0, 1, 2, *around(parts, "minItems", "maxItems")}
        lengths |= {len(cast("list[Any]", part.get("prefixItems", []))) for part in parts}
        for length in sorted(length for length in lengths if 0 <= length <= MAX_BYTES):
            goods = [
                self._fitting(self._old.item_at(old, at), self._new.item_at(new, at), depth)
                for at in range(min(length, 32))
            ]
            items = [good.value for good in goods if good is not None]
            sizes = [good.size + 1 for good in goods if good is not None]
            if len(items) < len(goods) or sum(sizes) + sum(sizes[-1:]) * (length - len(items)) > MAX_BYTES:
                continue
            items += items[-1:] * (length - len(items))
            yield items
            yield [*items, *items]
            distinct = [item + at if type(item) is int else item for at, item in enumerate(items)]
            yield distinct
            for at in range(min(length, 4)):
                for found in self._witnesses(self._old.item_at(old, at), self._new.item_at(new, at), depth):
                    yield [*items[:at], found.value, *items[at + 1 :]]

    def _objects(self, old: Place, new: Place, parts: list[JSONObject], depth: int) -> Iterator[Any]:
        base = self._with(_required(self._old, old), old, new, depth)
        if base is None:
            return
        yield dict(base)
        # With what only the new schema requires, an instance shows one break and not the missing ones, too.
        full = self._with(_required(self._old, old) | _required(self._new, new), old, new, depth) or base
        bases = [base, full] if full != base else [base]
        yield from ({name: full[name] for name in full if name != one} for one in full if one not in base)
        whole = dict(full)
        size = len(canonical_bytes(whole))
        for name in [*_all_names(parts), _UNHEARD_OF]:
            below, beside = self._old.property_at(old, name), self._new.property_at(new, name)
            fitting = self._fitting(below, beside, depth)
            if name not in base and fitting is not None:
                size += len(name) + fitting.size
                if size <= MAX_BYTES:
                    whole[name] = fitting.value
                yield from ({**each, name: fitting.value} for each in bases)
            for found in self._witnesses(below, beside, depth):
                yield from ({**each, name: found.value} for each in bases)
        yield whole
        yield {name: value for name, value in whole.items() if name != _UNHEARD_OF}
        yield from self._crowds(old, parts, base, depth)
        for pattern in _names(parts, "patternProperties"):
            name = sample(pattern)
            if name is not None:
                below, beside = self._old.property_at(old, name), self._new.property_at(new, name)
                goods = (*self._witnesses(below, beside, depth), self._fitting(below, beside, depth))
                yield from ({**full, name: good.value} for good in goods if good is not None)

    def _with(self, names: set[str], old: Place, new: Place, depth: int) -> dict[str, Any] | None:
        """Return an object with these properties, or None where there is no value for one of them."""
        made: dict[str, Any] = {}
        size = 0
        for name in sorted(names):
            good = self._fitting(self._old.property_at(old, name), self._new.property_at(new, name), depth)
            size += 0 if good is None else len(name) + good.size
            if good is None or size > MAX_BYTES:
                return None
            made[name] = good.value
        return made

    def _crowds(
        self, old: Place, parts: list[JSONObject], base: dict[str, Any], depth: int
    ) -> Iterator[dict[str, Any]]:
        """Yield objects with as many properties as the limits on their number."""
        rest = self._fitting(self._old.property_at(old, _UNHEARD_OF), (), depth)
        for count in sorted(around(parts, "minProperties", "maxProperties")):
            more = count - len(base)
            if rest is not None and more > 0 and more * (len(_UNHEARD_OF) + rest.size) <= MAX_BYTES:
                yield {**base, **{f"{_UNHEARD_OF}-{at}": rest.value for at in range(more)}}


def _parts(schema: Subschemas, place: Place, *, into_unions: bool = True) -> list[JSONObject]:
    return schema.members_at(schema.spread(place, into_unions=into_unions))


def _required(schema: Subschemas, place: Place) -> set[str]:
    return set(_names(_parts(schema, place, into_unions=False), "required"))


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


# Values that keywords of a schema suggest.

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
