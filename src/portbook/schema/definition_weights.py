"""Bounds the cost of many schemas that share their definitions, each definition weighed once.

The rules are those of `evaluation_cost`. That module takes one schema apart with everything it refers to,
which is too slow where a thousand schemas of one API refer to the same definitions. Here a schema is plain:
references lead to `#/$defs/NAME` only, and there are no anchors and no identifiers. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from portbook.schema.cycles import components
from portbook.schema.evaluation_cost import (
    CIRCULAR,
    MAX_EVALUATIONS,
    MAX_NESTING,
    TOO_COSTLY,
    TOO_NESTED,
    heaviest_part,
)
from portbook.schema.references import REPEATS, subschemas_of

__all__ = ["DefinitionWeights", "referred_names"]

_PREFIX: Final = "#/$defs/"


class _OnValue(NamedTuple):
    """What a schema costs on one value, whatever its parts."""

    evaluations: int
    nesting: int


class DefinitionWeights:
    """Weighs schemas that refer to `definitions`, which may grow, but do not change."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._needs: dict[str, tuple[str, ...]] = {}
        self._on_value: dict[str, _OnValue] = {}
        self._weights: dict[str, int] = {}
        self._circular: set[str] = set()

    def needs_of(self, name: str) -> tuple[str, ...]:
        """Return the names that a definition refers to itself."""
        found = self._needs.get(name)
        if found is None:
            found = self._needs[name] = tuple(dict.fromkeys(referred_names(self._definitions[name])))
        return found

    def problem_of(self, schema: Any) -> str | None:
        """Return why a schema, which holds all definitions that it needs, must not be compiled, or None."""
        if not isinstance(schema, dict):
            return None
        whole = cast("dict[str, Any]", schema)
        names = cast("dict[str, Any]", whole.get("$defs", {}))
        if new := [name for name in names if name not in self._weights]:
            self._weigh_on_value(new)
            self._weigh_with_parts(new)
        if not self._circular.isdisjoint(names):
            return CIRCULAR
        own = {key: part for key, part in whole.items() if key != "$defs"}
        if self._with_parts(own) > MAX_EVALUATIONS:
            return TOO_COSTLY
        return TOO_NESTED if self._on_one_value(own).nesting > MAX_NESTING else None

    def _weigh_on_value(self, names: Iterable[str]) -> None:
        """Weigh definitions on one value; those that lead to themselves on it are circular."""

        def steps_of(name: str) -> list[str]:
            # What was weighed before leads to nothing new.
            return [
                step
                for step in referred_names(self._definitions[name], is_on_value=True)
                if step not in self._on_value
            ]

        for members in components([name for name in names if name not in self._on_value], steps_of):
            if len(members) > 1 or members[0] in steps_of(members[0]):
                self._circular.update(members)
            for name in members:
                self._on_value[name] = self._on_one_value(self._definitions[name])

    def _weigh_with_parts(self, names: Iterable[str]) -> None:
        """Weigh definitions with what they refer to, as `evaluation_cost` does it with subschemas."""

        def steps_of(name: str) -> list[str]:
            return [need for need in self.needs_of(name) if need not in self._weights]

        for members in components(names, steps_of):
            for name in members:
                self._weights[name] = self._with_parts(self._definitions[name])
            heaviest = max(self._weights[name] for name in members)
            self._weights.update(dict.fromkeys(members, heaviest))

    def _on_one_value(self, schema: Any) -> _OnValue:
        if not isinstance(schema, dict):
            return _OnValue(1, 1)
        whole = cast("dict[str, Any]", schema)
        below = [self._on_one_value(child) for _, is_same, child in subschemas_of(whole) if is_same]
        if (name := _name_in(whole)) is not None:
            below.append(self._on_value.get(name, _OnValue(0, 0)))  # missing only in circles
        evaluations = 1 + _repeats(whole) * sum(each.evaluations for each in below)
        nesting = 1 + max((each.nesting for each in below), default=0)
        # Bounded, because a sum that doubles at each step soon has more digits than anybody needs.
        return _OnValue(min(evaluations, MAX_EVALUATIONS + 1), min(nesting, MAX_NESTING + 1))

    def _with_parts(self, schema: Any) -> int:
        if not isinstance(schema, dict):
            return 1
        whole = cast("dict[str, Any]", schema)
        parts: list[tuple[str, int]] = []
        same = 0
        for keyword, is_same, child in subschemas_of(whole):
            weight = self._with_parts(child)
            if is_same:
                same += weight
            else:
                parts.append((keyword, weight))
        if (name := _name_in(whole)) is not None:
            # One that leads back here counts as on a value without parts.
            same += self._weights.get(name) or self._on_value[name].evaluations
        return min(1 + _repeats(whole) * same + heaviest_part(parts), MAX_EVALUATIONS + 1)


def _repeats(schema: dict[str, Any]) -> int:
    return 1 if _UNEVALUATED.isdisjoint(schema) else REPEATS


_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})


def referred_names(schema: Any, *, is_on_value: bool = False) -> Iterator[str]:
    """Yield the names of the definitions that `schema` refers to, once for each reference.

    With `is_on_value`, only of those that apply to the value itself, and not to a part of it.
    """
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            whole = cast("dict[str, Any]", value)
            if (name := _name_in(whole)) is not None:
                yield name
            waiting.extend(child for _, is_same, child in subschemas_of(whole) if is_same or not is_on_value)


def _name_in(schema: dict[str, Any]) -> str | None:
    reference = schema.get("$ref")
    return reference.removeprefix(_PREFIX) if isinstance(reference, str) else None
