"""Compares two subschemas for equality, ignoring labels and the names of references. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.assets.compat.subschemas import Subschemas
from portbook.canonical import canonical_bytes
from portbook.model import JSON, JSONObject
from portbook.schema.references import Path

__all__ = ["LABELS", "Equivalence", "is_same_value", "plain"]

# Keywords that name or explain a schema, and do not constrain values.
LABELS: Final = frozenset(
    {
        "$id", "$schema", "$defs", "definitions", "$anchor", "$dynamicAnchor", "$comment", "$vocabulary",
        "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
    }
)  # fmt: skip

# Keywords that hold values, never schemas, even if a reference points there.
_VALUES: Final = frozenset({"const", "enum"})


class Equivalence:
    """Decides whether two subschemas are equal, including all that they refer to."""

    def __init__(self, new: Subschemas, old: Subschemas) -> None:
        self._new = new
        self._old = old
        self._assumed: set[tuple[Path, Path]] = set()

    def holds(self, new: Path, old: Path, keywords: tuple[str, ...] | None = None) -> bool:
        """Return whether they are equal; with `keywords`, only in these."""
        if (new, old) in self._assumed:
            return True
        ours, theirs = self._new.at(new), self._old.at(old)
        if not isinstance(ours, dict) or not isinstance(theirs, dict):
            return ours is theirs
        if keywords is None:
            self._assumed.add((new, old))
            if not self._same_targets(new, old):
                return False
        left = _words(cast("JSONObject", ours), keywords)
        right = _words(cast("JSONObject", theirs), keywords)
        return left.keys() == right.keys() and all(
            is_same_value(left[name], right[name])
            if name in _VALUES
            else self._same_value((*new, name), (*old, name), left[name], right[name])
            for name in left
        )

    def _same_targets(self, new: Path, old: Path) -> bool:
        ours, theirs = self._new.targets(new), self._old.targets(old)
        return len(ours) == len(theirs) and all(map(self.holds, ours, theirs))

    def _same_value(self, new: Path, old: Path, left: JSON, right: JSON) -> bool:
        if self._new.knows(new) and self._old.knows(old):
            return self.holds(new, old)
        if new[-1] == "$ref" and self._new.knows(new[:-1]) and self._new.targets(new[:-1]):
            return True  # their targets were compared
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(
                self._same_value((*new, name), (*old, name), left[name], right[name]) for name in left
            )
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(
                self._same_value((*new, at), (*old, at), left[at], right[at]) for at in range(len(left))
            )
        return is_same_value(left, right)


def _words(part: JSONObject, keywords: tuple[str, ...] | None) -> JSONObject:
    """Return the members of a part with these keywords, or all except its labels."""
    is_meant = LABELS.isdisjoint if keywords is None else set(keywords).issuperset
    return {name: value for name, value in part.items() if is_meant((name,))}


def plain(value: JSON) -> JSON:
    """Return `value` with every integral number as an int: 1 and 1.0 are equal in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def is_same_value(left: JSON, right: JSON) -> bool:
    """Return whether two values are equal in JSON Schema."""
    return canonical_bytes(plain(left)) == canonical_bytes(plain(right))
