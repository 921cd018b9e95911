"""Bounds the cost of evaluating a schema, before it is compiled.

References that fan out double the work at each step, sixty steps in a few lines of schema. A reference that
leads back to itself without descending into the instance has no meaning.

A reference that leads back after descending is evaluated again for each part of a value. The library keeps
its verdict on an object or a list, so however many ways lead back to it, only the first of them costs. It
keeps none on other values: there, each way costs as many evaluations as one value without parts.

Iterative throughout, so that no schema can exhaust the stack. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from portbook.errors import Finding
from portbook.schema.cycles import components
from portbook.schema.dialects import DIALECT
from portbook.schema.messages import escape_pointer
from portbook.schema.references import Document, Path

__all__ = [
    "CIRCULAR",
    "MAX_EVALUATIONS",
    "MAX_NESTING",
    "TOO_COSTLY",
    "TOO_NESTED",
    "examine",
    "heaviest_part",
]

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
