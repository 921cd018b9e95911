"""Bounds the cost of many schemas that share their definitions, each definition weighed once.

The rules are those of `evaluation_cost`. That module takes one schema apart with everything it refers to,
which is too slow where a thousand schemas of one API refer to the same definitions. Here a schema is plain:
references lead to `#/$defs/NAME` only, and there are no anchors and no identifiers. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

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


class _Weight(NamedTuple):
    evaluations: int
    nesting: int


class DefinitionWeights:
    """Weighs schemas that refer to `definitions`, which may grow, but do not change."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._needs: dict[str, tuple[str, ...]] = {}
        self._weights: dict[str, _Weight] = {}
        self._on_same_value: dict[str, frozenset[str]] = {}
        self._circular: dict[str, bool] = {}

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
        for name in names:
            self._weigh_definition(name)
        if any(self._is_circular(name) for name in names):
            return CIRCULAR
        evaluations, nesting = self._weigh(
            {key: part for key, part in whole.items() if key != "$defs"}, set()
        )
        if evaluations > MAX_EVALUATIONS:
            return TOO_COSTLY
        return TOO_NESTED if nesting > MAX_NESTING else None

    def _weigh_definition(self, origin: str) -> None:
        """Weigh a definition after those that it refers to, unless they lead back to it."""
        stack: list[tuple[str, bool]] = [(origin, False)]
        is_open: set[str] = set()
        while stack:
            name, is_leaving = stack.pop()
            if is_leaving:
                on_same_value: set[str] = set()
                self._weights[name] = self._weigh(self._definitions[name], on_same_value)
                self._on_same_value[name] = frozenset(on_same_value)
            elif name not in self._weights and name not in is_open:
                is_open.add(name)
                stack.append((name, True))
                stack.extend((need, False) for need in self.needs_of(name))

    def _weigh(self, schema: Any, on_same_value: set[str]) -> _Weight:
        """Return the weight of one schema, and add what it refers to without descending into the value."""
        if not isinstance(schema, dict):
            return _Weight(1, 1)
        parts: list[tuple[str, int]] = []
        same, deepest = 0, 0
        for keyword, is_same, child in subschemas_of(cast("dict[str, Any]", schema)):
            weight = self._weigh(child, on_same_value if is_same else set())
            if is_same:
                same, deepest = same + weight.evaluations, max(deepest, weight.nesting)
            else:
                parts.append((keyword, weight.evaluations))
        name = _name_in(cast("dict[str, Any]", schema))
        if name is not None:
            on_same_value.add(name)
            # One that leads back here descends into the value first, so its depth is bounded.
            target = self._weights.get(name, _Weight(0, 0))
            same, deepest = same + target.evaluations, max(deepest, target.nesting)
        repeats = REPEATS if not _UNEVALUATED.isdisjoint(cast("dict[str, Any]", schema)) else 1
        # Bounded, because a sum that doubles at each step soon has more digits than anybody needs.
        evaluations = min(1 + repeats * same + heaviest_part(parts), MAX_EVALUATIONS + 1)
        return _Weight(evaluations, min(1 + deepest, MAX_NESTING + 1))

    def _is_circular(self, origin: str) -> bool:
        """Return whether a definition leads to itself without descending into the value."""
        known = self._circular.get(origin)
        if known is None:
            seen: set[str] = set()
            waiting = [*self._on_same_value.get(origin, ())]
            while waiting and origin not in seen:
                name = waiting.pop()
                if name not in seen:
                    seen.add(name)
                    waiting.extend(self._on_same_value.get(name, ()))
            known = self._circular[origin] = origin in seen
        return known


_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})


def referred_names(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that `schema` refers to, once for each reference."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            whole = cast("dict[str, Any]", value)
            if (name := _name_in(whole)) is not None:
                yield name
            waiting.extend(child for _, _, child in subschemas_of(whole))


def _name_in(schema: dict[str, Any]) -> str | None:
    reference = schema.get("$ref")
    return reference.removeprefix(_PREFIX) if isinstance(reference, str) else None
