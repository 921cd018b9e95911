"""Rules of the proof for objects: properties, their names and their patterns. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from portbook.assets.compat.proof_rule import Holds, Rule, every
from portbook.assets.compat.subschemas import Place, Subschemas, matches
from portbook.assets.compat.text_languages import TextLanguages
from portbook.model import JSONObject
from portbook.schema.references import Path

__all__ = ["PropertyRules"]


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
