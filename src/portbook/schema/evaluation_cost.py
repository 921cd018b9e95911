"""Bounds the cost of evaluating a schema, before it is compiled.

References that fan out double the work at each step, sixty steps in a few lines of schema. A reference that
leads back to itself without descending into the instance has no meaning.

A reference that leads back after descending is evaluated again for each part of a value. The library keeps
its verdict on an object or a list, so however many ways lead back to it, only the first of them costs. It
keeps none on other values: there, each way costs as many evaluations as one value without parts.

Iterative throughout, so that no schema can exhaust the stack. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar, cast

from portbook.errors import Finding
from portbook.schema.json_schema_drafts import DIALECT
from portbook.schema.references import REPEATS, Document, Path, subschemas_of
from portbook.schema.violation_wording import escape_pointer

__all__ = [
    "CIRCULAR",
    "MAX_EVALUATIONS",
    "MAX_NESTING",
    "TOO_COSTLY",
    "TOO_NESTED",
    "DefinitionWeights",
    "components",
    "examine",
    "heaviest_part",
    "referred_names",
]

# Finds the cycles of a graph of references: Tarjan's algorithm (1972), one walk.
#
# Iterative, so that no schema can exhaust the stack.

_N = TypeVar("_N", bound=Hashable)

# Above every place in the order of a walk.
_GROUPED: Final = 1 << 62


def components(origins: Iterable[_N], steps_of: Callable[[_N], Sequence[_N]]) -> list[list[_N]]:
    """Return what `origins` lead to as groups, each group after those that it leads to.

    Nodes that lead to each other are one group, which has them in the order in which the walk left them: a
    step from one to a later one leads back up the walk. A node that is in no cycle is a group of its own.
    """
    found: list[list[_N]] = []
    order: dict[_N, int] = {}
    lowest: dict[_N, int] = {}
    left: dict[_N, int] = {}
    waiting: list[_N] = []
    for origin in origins:
        stack: list[tuple[_N, Sequence[_N], int]] = [] if origin in order else [(origin, steps_of(origin), 0)]
        while stack:
            node, steps, at = stack.pop()
            if at == 0:
                order[node] = lowest[node] = len(order)
                waiting.append(node)
            else:
                lowest[node] = min(lowest[node], lowest[steps[at - 1]])
            while at < len(steps) and steps[at] in order:
                lowest[node] = min(lowest[node], lowest[steps[at]])
                at += 1
            if at < len(steps):
                stack += [(node, steps, at + 1), (steps[at], steps_of(steps[at]), 0)]
                continue
            left[node] = len(left)
            if lowest[node] == order[node]:
                members = [waiting.pop()]
                while members[-1] != node:
                    members.append(waiting.pop())
                found.append(sorted(members, key=left.__getitem__))
                # What is in a group is no way back for those that are left later.
                lowest.update(dict.fromkeys(members, _GROUPED))
    return found


# Bounds the cost of many schemas that share their definitions, each definition weighed once.
#
# The rules are those of `evaluation_cost`. That module takes one schema apart with everything it refers to,
# which is too slow where a thousand schemas of one API refer to the same definitions. Here a schema is plain:
# references lead to `#/$defs/NAME` only, and there are no anchors and no identifiers.

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


# Takes a few milliseconds for a verdict, and well under a second for an explanation.
MAX_EVALUATIONS: Final = 50_000

# How deep subschemas may nest on one value. The library recurses, and a stack overflow ends the process. Half
# a megabyte, the smallest stack of a thread on any platform, is enough for this depth.
MAX_NESTING: Final = 500

TOO_COSTLY: Final = "its references fan out into too many evaluations; refer to each subschema fewer times"
TOO_NESTED: Final = f"nests more than {MAX_NESTING} subschemas on one value; reduce the nesting"
CIRCULAR: Final = "refers to itself without descending into the value; remove the reference"

# Of these keywords, only one applies to any one member or item.
_APART: Final = frozenset(
    {
        "properties", "additionalProperties", "unevaluatedProperties", "prefixItems", "items",
        "unevaluatedItems", "additionalItems",
    }
)  # fmt: skip


def examine(schema: Any, dialect: str = DIALECT) -> list[Finding]:
    """Return why `schema`, which matches its meta-schema, must not be compiled."""
    document = Document(schema, dialect)
    return document.resolve() or _circles(document) or _weigh(document)


def _weigh(document: Document) -> list[Finding]:
    """Return a finding where the evaluations of the root are too many, or nested too deeply."""
    nodes = document.nodes
    on_value: dict[Path, int] = {}
    nested: dict[Path, int] = {}
    for (path,) in components(nodes, lambda path: nodes[path].same):
        node = nodes[path]
        same = sum(on_value[step] for step in node.same)
        on_value[path] = min(1 + node.repeats * same, MAX_EVALUATIONS + 1)
        nested[path] = 1 + max((nested[step] for step in node.same), default=0)
    weights: dict[Path, int] = {}
    roots: list[Path] = [()]
    reached = components(roots, lambda path: nodes[path].steps)
    for members in reached:
        for path in members:
            node = nodes[path]
            # A step that leads back counts as on a value without parts: see the module's docstring.
            parts = ((str(step[len(path)]), weights.get(step) or on_value[step]) for step in node.parts)
            same = sum(weights.get(step) or on_value[step] for step in node.same)
            weights[path] = 1 + heaviest_part(parts) + node.repeats * same
            if weights[path] > MAX_EVALUATIONS:
                return [_too_costly(path)]
        # Whoever comes into a cycle comes to its heaviest part, too.
        weights.update(dict.fromkeys(members, max(weights[path] for path in members)))
    too_nested = (path for members in reached for path in members if nested[path] > MAX_NESTING)
    return [_too_nested(path) for path in islice(too_nested, 1)]


def _circles(document: Document) -> list[Finding]:
    """Return a finding for the first subschema that leads to itself without descending."""
    for members in components(document.nodes, lambda path: document.nodes[path].same):
        if len(members) > 1 or members[0] in document.nodes[members[0]].same:
            return [_circular(members[-1])]
    return []


def heaviest_part(parts: Iterable[tuple[str, int]]) -> int:
    """Return the most evaluations of any one part of a value, from pairs of a keyword and a subschema's cost.

    The members of an object are different values, so the costs of `properties` do not add up: a value of a
    thousand parts costs at most a thousand times as much as its costliest part.
    """
    apart, together = 0, 0
    for keyword, cost in parts:
        if keyword in _APART:
            apart = max(apart, cost)
        else:
            together += cost
    return apart + together


def _too_costly(path: Path) -> Finding:
    return Finding(escape_pointer(path), TOO_COSTLY, "$ref", "")


def _too_nested(path: Path) -> Finding:
    return Finding(escape_pointer(path), TOO_NESTED, "$ref", "")


def _circular(path: Path) -> Finding:
    return Finding(escape_pointer(path), CIRCULAR, "$ref", "")
