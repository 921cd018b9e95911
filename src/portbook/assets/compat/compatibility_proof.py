"""Tries to prove that the new schema allows every value that the old one allows. Pure: no I/O.

A failed proof is not a disproof. Each keyword of the new schema must follow from the old one by a rule
(`KeywordRules`). Each rule is sound and simple: what it accepts is so, what it does not accept may still be.
Keywords without such a rule (`not`, `oneOf`, `if`, ...) must be equal in both.

Where recursion returns to a statement that is being proved, it is assumed to hold: the proof has then
descended into the value, and values are finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, cast

from portbook.assets.compat.pattern_comparison import TextLanguages
from portbook.assets.compat.subschemas import (
    LABELS,
    Equivalence,
    Place,
    Subschemas,
    bounds_of,
    forms,
    is_exact,
    is_same_value,
    listed_values,
    matches,
    types_at,
    types_of,
)
from portbook.model import JSON, JSONObject
from portbook.schema.references import Path

__all__ = ["OPAQUE", "SILENT", "WHOLE", "Inclusion", "KeywordRules", "PropertyRules", "every"]

# The most steps of the whole proof, and of all proofs for single places after it.
_MAX_STEPS: Final = 20_000
_MAX_STEPS_BELOW: Final = 60_000

# The most places that are compiled to try their values, and the most values at one place.
_MAX_TRIALS: Final = 100
_MAX_VALUES: Final = 1_000


class _TooLong(Exception):
    """The proof needs too many steps."""


class Inclusion:
    """The statement that the new schema allows every value that the old one allows, and its proof."""

    def __init__(self, new: Subschemas, old: Subschemas, texts: TextLanguages) -> None:
        self.new = new
        self.old = old
        self.texts = texts
        self._is_provable = not (new.has_dynamic_references or old.has_dynamic_references)
        # Statements that are proved or being proved, in this order; a failed proof removes those after it.
        self._assumed: dict[tuple[Place, Place], None] = {}
        # Statements whose proof failed, each with the places of the new schema at which it did.
        self._failed: dict[tuple[Place, Place], list[Path]] = {}
        self._same: dict[tuple[Path, Path, tuple[str, ...] | None], bool] = {}
        self._open: list[Path] = []
        self.undecided: tuple[Path, ...] = ()
        """The places of the new schema that `prove` could not prove; none where it was not completed."""
        self._steps_left = _MAX_STEPS
        self._trials = 0
        self._rules = KeywordRules(new, old, texts, self._holds, self._is_same).by_keyword

    def prove(self) -> bool:
        """Return whether it is proved for all values."""
        is_proved = self.is_proved_at(self.new.root, self.old.root)
        self.undecided = tuple(dict.fromkeys(self._open))
        self._steps_left = _MAX_STEPS_BELOW
        return is_proved

    def is_proved_at(self, new: Place, old: Place) -> bool:
        """Return whether it is proved for the values of one place."""
        self._open.clear()
        try:
            return self._is_provable and self._holds(new, old)
        except (_TooLong, RecursionError):
            self._open.clear()
            self._assumed.clear()
            return False

    def _holds(self, new: Place, old: Place) -> bool:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _TooLong
        old = tuple(sorted(self.old.spread(old), key=repr))
        if (new, old) in self._assumed or any(self.old.at(path) is False for path in old):
            return True
        if not types_at(self.old, old):
            return True
        if (new, old) not in self._failed:
            here, before = len(self._open), len(self._assumed)
            for attempt, prove in enumerate((self._all_parts_hold, self._splits, self._all_values_hold)):
                self._assumed[new, old] = None
                is_proved = prove(new, old)
                found = self._open[here:]
                del self._open[here:]
                if is_proved:
                    return True
                if attempt == 0:  # the other attempts repeat it for some of the values
                    self._failed[new, old] = found
                while len(self._assumed) > before:
                    self._assumed.popitem()
        self._open += self._failed[new, old]
        return False

    def _all_parts_hold(self, new: Place, old: Place) -> bool:
        return every(self._part_holds(path, old) for path in self.new.spread(new))

    def _splits(self, new: Place, old: Place) -> bool:
        """Return whether the statement holds for each branch of a union in `old`."""
        for path in old:
            schema = self.old.at(path)
            for keyword in ("anyOf", "oneOf"):
                branches = cast("list[Any]", schema.get(keyword, [])) if isinstance(schema, dict) else []  # pyright: ignore[reportUnknownMemberType] # schemas are Any
                ways = [(*path, keyword, at) for at in range(len(branches))]
                fresh = [way for way in ways if way not in old]
                if ways and fresh == ways:
                    return all(self._holds(new, (*old, way)) for way in ways)
        return False

    def _all_values_hold(self, new: Place, old: Place) -> bool:
        """Return whether `old` has few values, each of which the validator of `new` allows."""
        values = self._values(old)
        if values is None or self._trials >= _MAX_TRIALS:
            return False
        self._trials += 1
        return all(self.new.verdict(new, value) for value in values)

    def _values(self, old: Place) -> list[JSON] | None:
        """Return all values that `old` allows, and maybe more; None where they are too many."""
        types = types_at(self.old, old)
        found: list[JSON] | None = None
        if types <= {"null", "boolean"}:
            found = [*([None] if "null" in types else []), *([True, False] if "boolean" in types else [])]
        for part in self.old.members_at(old):
            if found is None and ("enum" in part or "const" in part):
                found = cast("list[JSON]", part["enum"]) if "enum" in part else [part["const"]]
        if found is None or len(found) > _MAX_VALUES or not all(map(is_exact, found)):
            return None
        return [form for value in found for form in forms(value) if self.old.allows(old, form)]

    def _part_holds(self, path: Path, old: Place) -> bool:
        part = self.new.at(path)
        if isinstance(part, bool):
            self._open += [] if part else [path]
            return part
        members = cast("JSONObject", part)
        if any(self._is_same(path, other) for other in old):
            return True
        if not WHOLE.isdisjoint(members):
            self._open.append(path)
            return False
        return every(self._keyword_holds(keyword, members, path, old) for keyword in members)

    def _keyword_holds(self, keyword: str, members: JSONObject, path: Path, old: Place) -> bool:
        here = len(self._open)
        is_proved = self._follows(keyword, members, path, old)
        # A place below the keyword is more exact, except in a union, where any branch would do.
        if is_proved or keyword == "anyOf":
            del self._open[here:]
        if not is_proved and len(self._open) == here:
            self._open.append((*path, keyword))
        return is_proved

    def _follows(self, keyword: str, members: JSONObject, path: Path, old: Place) -> bool:
        about = ABOUT.get(keyword)
        types = types_at(self.old, old)
        if about is not None and about not in types and not (about == "number" and "integer" in types):
            return True
        rule = self._rules.get(keyword)
        if rule is not None and rule(members, path, old):
            return True
        if keyword in OPAQUE:
            return any(self._is_same(path, other, OPAQUE[keyword]) for other in old)
        return rule is None

    def _is_same(self, new: Path, old: Path, keywords: tuple[str, ...] | None = None) -> bool:
        """Return whether two subschemas are equal; with `keywords`, only in these."""
        key = (new, old, keywords)
        if key not in self._same:
            self._same[key] = Equivalence(self.new, self.old).holds(new, old, keywords)
        return self._same[key]


# The rules: when a keyword of the new schema follows from the old schema.

# What the keywords of JSON Schema have in common, for proofs about them.

# Keywords without a meaning of their own: labels, and keywords that belong to a different one. A member that
# is in none of these tables is not a keyword of the dialect, and has no meaning.
SILENT: Final = LABELS | {"allOf", "then", "else", "minContains", "maxContains", "contentSchema"}

# Keywords that must be equal in both schemas, each with the keywords that belong to it.
OPAQUE: Final = {
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
WHOLE: Final = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef"})

# The only type that a keyword constrains.
ABOUT: Final = {
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

# What a rule of the proof is, and how rules are combined.

# Whether it is proved that a place of the new schema allows every value that a place of the old one allows.
Holds: TypeAlias = Callable[[Place, Place], bool]

# Whether one keyword follows: the members of its subschema, the path to it, and the place of the old schema.
Rule: TypeAlias = Callable[[JSONObject, Path, Place], bool]


def every(proved: Iterable[bool]) -> bool:
    """Return whether all are true; unlike `all`, try each, so that every undecided place is found."""
    return all(tuple(proved))


# Rules of the proof for objects: properties, their names and their patterns.


class PropertyRules:
    """What the old schema has to state of objects, so that a keyword of the new one follows."""

    def __init__(self, old: Subschemas, texts: TextLanguages, holds: Holds) -> None:
        self._old = old
        self._texts = texts
        self._holds = holds
        self.by_keyword: dict[str, Rule] = {
            "properties": self._properties,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional,
            "required": self._required,
            "propertyNames": self._property_names,
        }

    def _required(self, members: JSONObject, path: Path, old: Place) -> bool:
        known = {
            name for part in self._old.members_at(old) for name in cast("list[str]", part.get("required", []))
        }
        return set(cast("list[str]", members["required"])) <= known

    def _properties(self, members: JSONObject, path: Path, old: Place) -> bool:
        return every(
            self._holds(((*path, "properties", name),), self._old.property_at(old, name))
            for name in cast("JSONObject", members["properties"])
        )

    def _additional(self, members: JSONObject, path: Path, old: Place) -> bool:
        named = cast("JSONObject", members.get("properties", {}))
        patterns = list(cast("JSONObject", members.get("patternProperties", {})))
        elsewhere = [
            name
            for name in self._named(old)
            if name not in named and not any(matches(pattern, name) for pattern in patterns)
        ]
        # Names that a pattern of this part covers are no additional properties.
        return self._all_names(
            ((*path, "additionalProperties"),),
            elsewhere,
            old,
            lambda known: any(self._is_included(known, pattern) for pattern in patterns),
        )

    def _pattern_properties(self, members: JSONObject, path: Path, old: Place) -> bool:
        return every(
            self._pattern_property(pattern, (*path, "patternProperties", pattern), old)
            for pattern in cast("JSONObject", members["patternProperties"])
        )

    def _pattern_property(self, pattern: str, path: Path, old: Place) -> bool:
        same = tuple(
            (*other, "patternProperties", known)
            for other in old
            for known in self._patterns(other)
            if self._is_included(pattern, known)
        )
        if same and self._holds((path,), same):
            return True
        names = [name for name in self._named(old) if matches(pattern, name)]
        return self._all_names((path,), names, old, lambda known: self._texts.are_apart(pattern, known))

    def _all_names(
        self, below: Place, names: list[str], old: Place, is_elsewhere: Callable[[str], bool]
    ) -> bool:
        """Return whether `below` allows the values of these properties, and of all unnamed properties.

        Names of a pattern that `is_elsewhere` are none of those that `below` is about.
        """
        if not all(self._holds(below, self._old.property_at(old, name)) for name in names):
            return False
        # A property without a name in the old schema matches a pattern in one of its parts, or is an
        # additional property in all of them.
        rest: list[Path] = []
        for path in old:
            known = [one for one in self._patterns(path) if not is_elsewhere(one)]
            if not all(self._holds(below, ((*path, "patternProperties", one),)) for one in known):
                return False
            if self._old.knows((*path, "additionalProperties")):
                rest.append((*path, "additionalProperties"))
        return self._holds(below, tuple(rest))

    def _patterns(self, path: Path) -> list[str]:
        part = self._old.at(path)
        return list(cast("JSONObject", part.get("patternProperties", {}))) if isinstance(part, dict) else []  # pyright: ignore[reportUnknownMemberType] # schemas are Any

    def _property_names(self, members: JSONObject, path: Path, old: Place) -> bool:
        paths = [(*other, "propertyNames") for other in old]
        known = tuple(filter(self._old.knows, paths))
        return bool(known) and self._holds(((*path, "propertyNames"),), known)

    def _named(self, old: Place) -> list[str]:
        names = {
            name
            for part in self._old.members_at(old)
            for name in cast("JSONObject", part.get("properties", {}))
        }
        return sorted(names)

    def _is_included(self, inner: str, outer: str) -> bool:
        """Return whether it is proved that `outer` matches every text that `inner` matches."""
        return inner == outer or self._texts.includes([{"pattern": inner}], "pattern", outer)


# Whether a subschema of the new schema and one of the old are written alike in some keywords.
_IsSame: TypeAlias = Callable[[Path, Path, tuple[str, ...]], bool]


class KeywordRules:
    """What the old schema has to state, so that a keyword of the new one follows."""

    def __init__(
        self, new: Subschemas, old: Subschemas, texts: TextLanguages, holds: Holds, is_same: _IsSame
    ) -> None:
        self._new = new
        self._old = old
        self._texts = texts
        self._holds = holds
        self._is_same = is_same
        self.by_keyword: dict[str, Rule] = {
            "$ref": self._reference,
            "type": self._type,
            "enum": lambda members, path, old: self._listed(listed_values(members, "enum"), old),
            "const": lambda members, path, old: self._listed(listed_values(members, "const"), old),
            "anyOf": self._any_of,
            "prefixItems": self._items,
            "items": self._items,
            "multipleOf": self._multiple_of,
            "uniqueItems": self._unique_items,
            "pattern": self._text,
            "minimum": self._lower("minimum", "exclusiveMinimum"),
            "exclusiveMinimum": self._lower("minimum", "exclusiveMinimum"),
            "maximum": self._upper("maximum", "exclusiveMaximum"),
            "exclusiveMaximum": self._upper("maximum", "exclusiveMaximum"),
            **{f"min{noun}": self._lower(f"min{noun}") for noun in ("Items", "Properties")},
            **{f"max{noun}": self._upper(f"max{noun}") for noun in ("Items", "Properties")},
            **{f"{end}Length": self._length(f"{end}Length") for end in ("min", "max")},
            **PropertyRules(old, texts, holds).by_keyword,
        }

    # -- keywords of every type

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
        return types_at(self._old, old) <= types_of({"type": members["type"]})

    def _listed(self, allowed: frozenset[bytes], old: Place) -> bool:
        return any(
            listed_values(part, keyword) <= allowed
            for part in self._old.members_at(old)
            for keyword in ("enum", "const")
            if keyword in part
        )

    def _any_of(self, members: JSONObject, path: Path, old: Place) -> bool:
        branches = cast("list[JSON]", members["anyOf"])
        return any(self._holds(((*path, "anyOf", at),), old) for at in range(len(branches)))

    # -- numbers, lengths and counts

    def _lower(self, *keywords: str) -> Rule:
        return lambda members, path, old: self._bounded(members, old, keywords, 1)

    def _upper(self, *keywords: str) -> Rule:
        return lambda members, path, old: self._bounded(members, old, keywords, -1)

    def _bounded(self, members: JSONObject, old: Place, keywords: tuple[str, ...], sign: int) -> bool:
        """Return whether a bound of the old schema is at least as strict as every bound of `members`."""
        bounds = [bound for part in self._old.members_at(old) for bound in bounds_of(part, keywords, sign)]
        if keywords[0] in ("minLength", "minItems", "minProperties"):
            bounds.append((0, False))  # lengths and counts are never negative
        return all(any(bound >= wanted for bound in bounds) for wanted in bounds_of(members, keywords, sign))

    def _multiple_of(self, members: JSONObject, path: Path, old: Place) -> bool:
        wanted = members["multipleOf"]
        if not isinstance(wanted, int):
            return self._has_same("multipleOf", wanted, old)
        known = [part["multipleOf"] for part in self._old.members_at(old) if "multipleOf" in part]
        return any(isinstance(one, int) and one % wanted == 0 for one in known) or (
            wanted == 1 and "number" not in types_at(self._old, old)
        )

    def _unique_items(self, members: JSONObject, path: Path, old: Place) -> bool:
        return not members["uniqueItems"] or self._has_same("uniqueItems", True, old)

    # -- arrays

    def _items(self, members: JSONObject, path: Path, old: Place) -> bool:
        """Return whether it holds for every item: those in `prefixItems` of either schema, and the rest."""
        parts = [members, *self._old.members_at(old)]
        longest = max(len(cast("list[Any]", part.get("prefixItems", []))) for part in parts)
        return every(
            self._holds(self._only_at(path, members, at), self._old.item_at(old, at))
            for at in range(longest + 1)
        )

    def _only_at(self, path: Path, members: JSONObject, index: int) -> Place:
        """Return the place of an item in this part alone, without other parts of the new schema."""
        before = len(cast("list[Any]", members.get("prefixItems", [])))
        if index < before:
            return ((*path, "prefixItems", index),)
        return ((*path, "items"),) if "items" in members else ()

    # -- texts

    def _text(self, members: JSONObject, path: Path, old: Place) -> bool:
        """Return whether the pattern matches every text that the old patterns and lengths allow."""
        return self._texts.includes(self._old.members_at(old), "pattern", members["pattern"])

    def _length(self, keyword: str) -> Rule:
        bounded = self._lower(keyword) if keyword == "minLength" else self._upper(keyword)
        return lambda members, path, old: (
            bounded(members, path, old)
            or self._texts.includes(self._old.members_at(old), keyword, members[keyword])
        )

    def _has_same(self, keyword: str, value: JSON, old: Place) -> bool:
        return any(
            keyword in part and is_same_value(part[keyword], value) for part in self._old.members_at(old)
        )
