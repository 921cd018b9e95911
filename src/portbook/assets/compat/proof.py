"""Tries to prove that the new schema allows every value that the old one allows. Pure: no I/O.

A failed proof is not a disproof. Each keyword of the new schema must follow from the old one by a simple,
sound rule. Keywords without such a rule (`not`, `oneOf`, `if`, ...) must be equal in both. Where recursion
returns to a statement that is being proved, it is assumed to hold: the proof has then descended into the
value, and values are finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from portbook.assets.compat.equivalence import LABELS, Equivalence, is_same_value, plain
from portbook.assets.compat.subschemas import Place, Subschemas
from portbook.canonical import canonical_bytes
from portbook.model import JSON, JSONObject
from portbook.schema.references import Path

__all__ = ["Proof", "prove_inclusion"]

# The most steps of a proof.
_MAX_STEPS: Final = 20_000

# The most places that are compiled to try their values, and the most values at one place.
_MAX_TRIALS: Final = 100
_MAX_VALUES: Final = 1_000

# From here on, arithmetic may distinguish an integer from the float that equals it.
_EXACT: Final = 2**53

_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

# Keywords without a meaning of their own: labels, and keywords that belong to a different one. A member that
# is in none of these tables is not a keyword of the dialect, and has no meaning.
SILENT: Final = LABELS | {"allOf", "then", "else", "minContains", "maxContains", "contentSchema"}

# Keywords that must be equal in both schemas, each with the keywords that belong to it.
_OPAQUE: Final = {
    "not": ("not",),
    "oneOf": ("oneOf",),
    "if": ("if", "then", "else"),
    "contains": ("contains", "minContains", "maxContains"),
    "dependentSchemas": ("dependentSchemas",),
    "dependentRequired": ("dependentRequired",),
    "dependencies": ("dependencies",),
    "propertyNames": ("propertyNames",),
    "contentEncoding": ("contentEncoding", "contentMediaType", "contentSchema"),
    "contentMediaType": ("contentEncoding", "contentMediaType", "contentSchema"),
    "pattern": ("pattern",),
    "format": ("format",),
}

# Keywords that depend on those beside them: all of them must be equal. The target of a dynamic reference
# depends on how it was reached, so with one nothing is proved.
_WHOLE: Final = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef"})

# The only type that a keyword constrains.
_ABOUT: Final = {
    **dict.fromkeys(
        ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"), "string"
    ),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(
        (
            "properties", "patternProperties", "additionalProperties", "required", "minProperties",
            "maxProperties", "propertyNames", "dependentSchemas", "dependentRequired", "dependencies",
        ),
        "object",
    ),
}  # fmt: skip


class _TooLong(Exception):
    """The proof needs too many steps."""


class Proof(NamedTuple):
    """Whether it is proved that the new schema allows every value that the old one allows."""

    is_proved: bool
    undecided: Path | None = None
    """The first place of the new schema that could not be proved; None where the proof was not completed."""


def prove_inclusion(new: Subschemas, old: Subschemas) -> Proof:
    """Return whether it is proved that `new` allows every value that `old` allows."""
    if new.has_dynamic_references or old.has_dynamic_references:
        return Proof(is_proved=False)
    proof = _Prover(new, old)
    try:
        is_proved = proof.holds(new.root, old.root)
    except (_TooLong, RecursionError):
        return Proof(is_proved=False)
    return Proof(is_proved, None if is_proved else proof.undecided)


class _Prover:
    def __init__(self, new: Subschemas, old: Subschemas) -> None:
        self._new = new
        self._old = old
        # Statements that are proved or being proved, in this order; a failed proof removes those after it.
        self._assumed: dict[tuple[Place, Place], None] = {}
        self.undecided: Path | None = None
        """The place at which the last failed proof stopped."""
        self._steps = 0
        self._trials = 0
        self._rules: dict[str, Callable[[JSONObject, Path, Place], bool]] = {
            "$ref": self._reference,
            "type": self._type,
            "enum": lambda members, path, old: self._listed(_listed(members, "enum"), old),
            "const": lambda members, path, old: self._listed(_listed(members, "const"), old),
            "anyOf": self._any_of,
            "properties": self._properties,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional,
            "required": self._required,
            "prefixItems": self._items,
            "items": self._items,
            "multipleOf": self._multiple_of,
            "uniqueItems": self._unique_items,
            "minimum": self._lower("minimum", "exclusiveMinimum"),
            "exclusiveMinimum": self._lower("minimum", "exclusiveMinimum"),
            "maximum": self._upper("maximum", "exclusiveMaximum"),
            "exclusiveMaximum": self._upper("maximum", "exclusiveMaximum"),
            **{f"min{noun}": self._lower(f"min{noun}") for noun in ("Length", "Items", "Properties")},
            **{f"max{noun}": self._upper(f"max{noun}") for noun in ("Length", "Items", "Properties")},
        }

    def holds(self, new: Place, old: Place) -> bool:
        """Return whether it is proved that `new` allows every value that `old` allows."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise _TooLong
        old = tuple(sorted(self._old.spread(old), key=repr))
        if (new, old) in self._assumed or any(self._old.at(path) is False for path in old):
            return True
        if not self._types(old):
            return True
        undecided: Path | None = None
        for attempt, prove in enumerate((self._all_parts_hold, self._splits, self._all_values_hold)):
            before = len(self._assumed)
            self._assumed[new, old] = None
            if prove(new, old):
                return True
            if attempt == 0:  # the other attempts repeat it for some of the values
                undecided = self.undecided
            while len(self._assumed) > before:
                self._assumed.popitem()
        self.undecided = undecided
        return False

    def _all_parts_hold(self, new: Place, old: Place) -> bool:
        return all(self._part_holds(path, old) for path in self._new.spread(new))

    def _splits(self, new: Place, old: Place) -> bool:
        """Return whether the statement holds for each branch of a union in `old`."""
        for path in old:
            schema = self._old.at(path)
            for keyword in ("anyOf", "oneOf"):
                branches = cast("list[Any]", schema.get(keyword, [])) if isinstance(schema, dict) else []  # pyright: ignore[reportUnknownMemberType] # schemas are Any
                ways = [(*path, keyword, at) for at in range(len(branches))]
                fresh = [way for way in ways if way not in old]
                if ways and fresh == ways:
                    return all(self.holds(new, (*old, way)) for way in ways)
        return False

    def _all_values_hold(self, new: Place, old: Place) -> bool:
        """Return whether `old` has few values, each of which the validator of `new` allows."""
        values = self._values(old)
        if values is None or self._trials >= _MAX_TRIALS:
            return False
        self._trials += 1
        return all(self._new.verdict(new, value) for value in values)

    def _values(self, old: Place) -> list[JSON] | None:
        """Return all values that `old` allows, and maybe more; None where they are too many."""
        types = self._types(old)
        found: list[JSON] | None = None
        if types <= {"null", "boolean"}:
            found = [*([None] if "null" in types else []), *([True, False] if "boolean" in types else [])]
        for part in self._old.members_at(old):
            if found is None and ("enum" in part or "const" in part):
                found = cast("list[JSON]", part["enum"]) if "enum" in part else [part["const"]]
        if found is None or len(found) > _MAX_VALUES or not all(map(_is_exact, found)):
            return None
        return [form for value in found for form in _forms(value) if self._old.allows(old, form)]

    def _part_holds(self, path: Path, old: Place) -> bool:
        part = self._new.at(path)
        self.undecided = path
        if isinstance(part, bool):
            return part
        members = cast("JSONObject", part)
        if any(self._is_same(path, other) for other in old):
            return True
        if not _WHOLE.isdisjoint(members):
            return False
        for keyword in members:
            self.undecided = None
            if not self._follows(keyword, members, path, old):
                # A place below the keyword is more exact, except in a union, where any branch would do.
                if self.undecided is None or keyword == "anyOf":
                    self.undecided = (*path, keyword)
                return False
        return True

    def _follows(self, keyword: str, members: JSONObject, path: Path, old: Place) -> bool:
        about = _ABOUT.get(keyword)
        types = self._types(old)
        if about is not None and about not in types and not (about == "number" and "integer" in types):
            return True
        rule = self._rules.get(keyword)
        if rule is not None and rule(members, path, old):
            return True
        if keyword in _OPAQUE:
            return any(self._is_same(path, other, _OPAQUE[keyword]) for other in old)
        return rule is None

    # -- keywords of every type

    def _types(self, old: Place) -> frozenset[str]:
        """Return the types of values that `old` allows."""
        types = _TYPES
        for path in old:
            part = self._old.at(path)
            if isinstance(part, dict):
                types &= _types_of(cast("JSONObject", part))
        return types

    def _reference(self, members: JSONObject, path: Path, old: Place) -> bool:
        """Return whether its target is among the parts, or is missing for an equal reference in both."""
        if self._new.targets(path):
            return True  # it is among the parts
        # Equal references mean the same only where the old one has no target either.
        return any(
            isinstance(self._old.at(other), dict)
            and not self._old.targets(other)
            and self._is_same(path, other, ("$ref",))
            for other in old
        )

    def _type(self, members: JSONObject, path: Path, old: Place) -> bool:
        return self._types(old) <= _types_of({"type": members["type"]})

    def _listed(self, allowed: frozenset[bytes], old: Place) -> bool:
        return any(
            _listed(part, keyword) <= allowed
            for part in self._old.members_at(old)
            for keyword in ("enum", "const")
            if keyword in part
        )

    def _any_of(self, members: JSONObject, path: Path, old: Place) -> bool:
        branches = cast("list[JSON]", members["anyOf"])
        return any(self.holds(((*path, "anyOf", at),), old) for at in range(len(branches)))

    # -- numbers, lengths and counts

    def _lower(self, *keywords: str) -> Callable[[JSONObject, Path, Place], bool]:
        return lambda members, path, old: self._bounded(members, old, keywords, 1)

    def _upper(self, *keywords: str) -> Callable[[JSONObject, Path, Place], bool]:
        return lambda members, path, old: self._bounded(members, old, keywords, -1)

    def _bounded(self, members: JSONObject, old: Place, keywords: tuple[str, ...], sign: int) -> bool:
        """Return whether a bound of the old schema is at least as strict as every bound of `members`."""
        bounds = [bound for part in self._old.members_at(old) for bound in _bounds(part, keywords, sign)]
        if keywords[0] in ("minLength", "minItems", "minProperties"):
            bounds.append((0, False))  # lengths and counts are never negative
        return all(any(bound >= wanted for bound in bounds) for wanted in _bounds(members, keywords, sign))

    def _multiple_of(self, members: JSONObject, path: Path, old: Place) -> bool:
        wanted = members["multipleOf"]
        if not isinstance(wanted, int):
            return self._has_same("multipleOf", wanted, old)
        known = [part["multipleOf"] for part in self._old.members_at(old) if "multipleOf" in part]
        return any(isinstance(one, int) and one % wanted == 0 for one in known) or (
            wanted == 1 and "number" not in self._types(old)
        )

    def _unique_items(self, members: JSONObject, path: Path, old: Place) -> bool:
        return not members["uniqueItems"] or self._has_same("uniqueItems", True, old)

    # -- arrays

    def _items(self, members: JSONObject, path: Path, old: Place) -> bool:
        """Return whether it holds for every item: those in `prefixItems` of either schema, and the rest."""
        parts = [members, *self._old.members_at(old)]
        longest = max(len(cast("list[Any]", part.get("prefixItems", []))) for part in parts)
        return all(
            self.holds(self._only_at(path, members, at), self._old.item_at(old, at))
            for at in range(longest + 1)
        )

    def _only_at(self, path: Path, members: JSONObject, index: int) -> Place:
        """Return the place of an item in this part alone, without other parts of the new schema."""
        before = len(cast("list[Any]", members.get("prefixItems", [])))
        if index < before:
            return ((*path, "prefixItems", index),)
        return ((*path, "items"),) if "items" in members else ()

    # -- objects

    def _required(self, members: JSONObject, path: Path, old: Place) -> bool:
        known = {
            name for part in self._old.members_at(old) for name in cast("list[str]", part.get("required", []))
        }
        return set(cast("list[str]", members["required"])) <= known

    def _properties(self, members: JSONObject, path: Path, old: Place) -> bool:
        return all(
            self.holds(((*path, "properties", name),), self._old.property_at(old, name))
            for name in cast("JSONObject", members["properties"])
        )

    def _additional(self, members: JSONObject, path: Path, old: Place) -> bool:
        named = cast("JSONObject", members.get("properties", {}))
        below = ((*path, "additionalProperties"),)
        elsewhere = [name for name in self._named(old) if name not in named]
        return self._all_names(below, elsewhere, old)

    def _pattern_properties(self, members: JSONObject, path: Path, old: Place) -> bool:
        for pattern in cast("JSONObject", members["patternProperties"]):
            below = ((*path, "patternProperties", pattern),)
            same = tuple(
                (*other, "patternProperties", pattern)
                for other in old
                if self._old.knows((*other, "patternProperties", pattern))
            )
            if not (same and self.holds(below, same)) and not self._all_names(below, self._named(old), old):
                return False
        return True

    def _all_names(self, below: Place, names: list[str], old: Place) -> bool:
        """Return whether `below` allows the values of these properties, and of all unnamed properties."""
        if not all(self.holds(below, self._old.property_at(old, name)) for name in names):
            return False
        # A property without a name in the old schema matches a pattern in one of its parts, or is an
        # additional property in all of them.
        rest: list[Path] = []
        for path in old:
            found = self._old.at(path)
            if isinstance(found, dict):
                part = cast("JSONObject", found)
                patterns = cast("JSONObject", part.get("patternProperties", {}))
                if not all(self.holds(below, ((*path, "patternProperties", one),)) for one in patterns):
                    return False
                if "additionalProperties" in part:
                    rest.append((*path, "additionalProperties"))
        return self.holds(below, tuple(rest))

    def _named(self, old: Place) -> list[str]:
        names = {
            name
            for part in self._old.members_at(old)
            for name in cast("JSONObject", part.get("properties", {}))
        }
        return sorted(names)

    # -- equality

    def _has_same(self, keyword: str, value: JSON, old: Place) -> bool:
        return any(
            keyword in part and is_same_value(part[keyword], value) for part in self._old.members_at(old)
        )

    def _is_same(self, new: Path, old: Path, keywords: tuple[str, ...] | None = None) -> bool:
        """Return whether two subschemas are equal; with `keywords`, only in these."""
        return Equivalence(self._new, self._old).holds(new, old, keywords)


def _types_of(part: JSONObject) -> frozenset[str]:
    """Return the types that one part allows by its `type`, `enum` or `const`."""
    types = _TYPES
    if "type" in part:
        said = part["type"]
        types = frozenset(cast("list[str]", said) if isinstance(said, list) else [cast("str", said)])
        if "number" in types:
            types |= {"integer"}
    if "enum" in part or "const" in part:
        listed = cast("list[JSON]", part["enum"]) if "enum" in part else [part["const"]]
        types &= frozenset(map(_kind, listed))
    return types


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    by_type: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return by_type.get(type(value), "null")


def _is_exact(value: JSON) -> bool:
    """Return whether every number in `value` is exact both as an integer and as a float."""
    if isinstance(value, list):
        return all(map(_is_exact, value))
    if isinstance(value, dict):
        return all(map(_is_exact, value.values()))
    return not isinstance(value, int | float) or abs(value) < _EXACT


def _forms(value: JSON) -> tuple[JSON, JSON]:
    """Return `value` with integral numbers as ints, and `value` with all numbers as floats."""
    return plain(value), _floated(value)


def _floated(value: JSON) -> JSON:
    """Return `value` with every number as a float, which is equal in JSON Schema."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [_floated(item) for item in value]
    if isinstance(value, dict):
        return {name: _floated(item) for name, item in value.items()}
    return value


def _listed(part: JSONObject, keyword: str) -> frozenset[bytes]:
    listed = cast("list[JSON]", part[keyword]) if keyword == "enum" else [part[keyword]]
    return frozenset(canonical_bytes(plain(value)) for value in listed)


def _bounds(part: JSONObject, keywords: tuple[str, ...], sign: int) -> list[tuple[float, bool]]:
    """Return a part's bounds in one direction; a larger one is stricter."""
    found: list[tuple[float, bool]] = []
    for keyword in keywords:
        bound = part.get(keyword)
        if isinstance(bound, int | float):
            found.append((sign * bound, keyword.startswith("exclusive")))
    return found
