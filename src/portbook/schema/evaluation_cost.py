"""Bounds the cost of evaluating a schema, before it is compiled.

References that fan out double the work at each step, sixty steps in a few lines of schema. A reference that
leads back to itself without descending into the instance has no meaning.

Iterative throughout, so that no schema can exhaust the stack. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from portbook.errors import Finding
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
    weights: dict[Path, int] = {}
    nested: dict[Path, int] = {}
    open_same: set[Path] = set()
    stack: list[tuple[Path, bool]] = [((), False)]
    while stack:
        path, is_leaving = stack.pop()
        node = document.nodes[path]
        if is_leaving:
            open_same.discard(path)
            # A part that leads back here descends into the instance first, so its depth is bounded.
            parts = ((str(step[len(path)]), weights.get(step, 0)) for step in node.parts)
            weights[path] = 1 + heaviest_part(parts)
            weights[path] += node.repeats * sum(weights.get(step, 0) for step in node.same)
            nested[path] = 1 + max((nested.get(step, 0) for step in node.same), default=0)
            if weights[path] > MAX_EVALUATIONS:
                return [_too_costly(path)]
            if nested[path] > MAX_NESTING:
                return [_too_nested(path)]
        elif path not in weights and path not in open_same:
            open_same.add(path)
            stack.append((path, True))
            stack.extend((step, False) for step in (*node.same, *node.parts) if step not in weights)
    return []


def _circles(document: Document) -> list[Finding]:
    """Return a finding for the first subschema that leads to itself without descending."""
    done: set[Path] = set()
    for origin in document.nodes:
        on_path: set[Path] = set()
        stack: list[tuple[Path, bool]] = [(origin, False)]
        while stack:
            path, is_leaving = stack.pop()
            if is_leaving:
                on_path.discard(path)
                done.add(path)
            elif path in on_path:
                return [_circular(path)]
            elif path not in done:
                on_path.add(path)
                stack.append((path, True))
                stack.extend((step, False) for step in document.nodes[path].same)
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
