"""Tries to prove that the new schema allows every value that the old one allows. Pure: no I/O.

A failed proof is not a disproof. Each keyword of the new schema must follow from the old one by a simple,
sound rule (`keyword_rules`). Keywords without such a rule (`not`, `oneOf`, `if`, ...) must be equal in both.
Where recursion returns to a statement that is being proved, it is assumed to hold: the proof has then
descended into the value, and values are finite.
"""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.assets.compat.equivalence import Equivalence
from portbook.assets.compat.keyword_rules import ABOUT, OPAQUE, WHOLE, KeywordRules, every
from portbook.assets.compat.pattern_comparison import TextLanguages
from portbook.assets.compat.stated_values import forms, is_exact, types_at
from portbook.assets.compat.subschemas import Place, Subschemas
from portbook.model import JSON, JSONObject
from portbook.schema.references import Path

__all__ = ["Inclusion"]

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
