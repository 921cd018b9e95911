"""Rules of the proof: when a keyword of the new schema follows from the old schema. Pure: no I/O.

Each rule is sound and simple: what it accepts is so, what it does not accept may still be. The rules for
objects are in `property_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from portbook.assets.compat.equivalence import is_same_value
from portbook.assets.compat.proof_rule import Holds, Rule, every
from portbook.assets.compat.property_rules import PropertyRules
from portbook.assets.compat.stated_values import bounds_of, listed_values, types_at, types_of
from portbook.assets.compat.subschemas import Place, Subschemas
from portbook.assets.compat.text_languages import TextLanguages
from portbook.model import JSON, JSONObject
from portbook.schema.references import Path

__all__ = ["KeywordRules"]

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
