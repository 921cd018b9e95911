"""The cost of explaining a violation, and a twin of a schema that explains less where the cost is too high.

A verdict is cheap: the library caches its evaluations. An explanation is not. The library lists every error,
at about 15 µs each, before it returns the first. The error of a union holds the errors of all its branches,
each with everything below it. Nothing is cached, so a schema that recurses in two ways doubles the work with
each level of the document: minutes for a message of 300 bytes.

The twin gives the same verdicts, and does not explain the branches of a union, nor a cycle that one value can
take in more than one way. Pure: no I/O.
"""

from __future__ import annotations

import copy
from typing import Any, Final, cast

from portbook.schema.evaluation_cost import components
from portbook.schema.references import Document, Path
from portbook.text.named_tuple import NamedTuple

__all__ = ["Explanation", "explanation_of"]

# The limit of an explanation, in bytes of the document times evaluations of one value: about 0.1 seconds.
_MAX_COST: Final = 32_768

# However simple the schema, every two bytes of a document may have an error.
_MAX_BYTES: Final = 4_096

_UNIONS: Final = ("anyOf", "oneOf")


class Explanation(NamedTuple):
    """How to explain violations of a schema."""

    max_bytes: int
    """Documents of at most this many bytes are explained in full; larger ones by their first violation."""
    twin: Any
    """The schema that finds the first violation, or None where the schema itself can be used."""


def explanation_of(schema: Any, dialect: str) -> Explanation:
    """Return how to explain violations of `schema`, which has been compiled."""
    document = Document(schema, dialect)
    document.resolve()
    cycles = _cycles(document)
    forks = _forks(document, cycles)
    branches = [
        (*path, keyword, at)
        for path, node in document.nodes.items()
        for keyword in _UNIONS
        for at in range(_length(node.schema, keyword))
    ]
    if not branches and not forks:
        return Explanation(min(_MAX_BYTES, _MAX_COST // _cost(document, [])), None)
    is_unbounded = bool(forks) or any(path[:-2] in cycles for path in branches)
    max_bytes = 0 if is_unbounded else min(_MAX_BYTES, _MAX_COST // _cost(document, branches))
    return Explanation(max_bytes, _twin(schema, branches, forks))


def _length(schema: Any, keyword: str) -> int:
    return len(cast("dict[str, Any]", schema).get(keyword, ())) if isinstance(schema, dict) else 0


def _cycles(document: Document) -> dict[Path, int]:
    """Return the subschemas that lead back to themselves, each with its cycle's number."""
    nodes = document.nodes
    return {
        path: number
        for number, members in enumerate(components(nodes, lambda path: nodes[path].steps))
        for path in members
        if len(members) > 1 or path in nodes[path].steps
    }


def _forks(document: Document, cycles: dict[Path, int]) -> list[Path]:
    """Return the references of every cycle that one value can take in more than one way.

    The branches of a union do not count: the twin does not explain them anyway.
    """
    forked: set[int] = set()
    for path, cycle in cycles.items():
        node = document.nodes[path]
        same = [step for step in node.same if cycles.get(step) == cycle and not _is_branch(step, path)]
        keywords = [str(step[len(path)]) for step in node.parts if cycles.get(step) == cycle]
        if len(same) + _ways(keywords) > 1:
            forked.add(cycle)
    return [
        path
        for path, cycle in cycles.items()
        if cycle in forked and not {"$ref", "$dynamicRef"}.isdisjoint(document.nodes[path].schema)
    ]


def _is_branch(path: Path, of: Path) -> bool:
    return len(path) > 1 and path[:-2] == of and path[-2] in _UNIONS


def _ways(keywords: list[str]) -> int:
    """Return how many of these keywords can apply to the same part of a value."""
    # Only one of these applies to any one part.
    once = {"properties", "additionalProperties", "unevaluatedProperties"}
    members = bool(once & set(keywords)) + keywords.count("patternProperties")
    items = bool({"prefixItems", "items", "unevaluatedItems"} & set(keywords)) + ("contains" in keywords)
    return max(members, items)


def _cost(document: Document, branches: list[Path]) -> int:
    """Return the maximum number of errors of one value, including those below the branches of a union."""
    on_value: dict[Path, int] = {}
    with_parts: dict[Path, int] = {}
    for path in _from_the_leaves(document):
        node = document.nodes[path]
        own = 1 + _length(node.schema, "required")
        on_value[path] = own + sum(on_value.get(step, 0) for step in node.same)
        with_parts[path] = own + sum(with_parts.get(step, 0) for step in node.steps)
    unions: dict[Path, int] = {}
    for branch in branches:
        unions[branch[:-2]] = unions.get(branch[:-2], 1) + with_parts[branch]
    return max(*on_value.values(), *unions.values(), 1)


def _from_the_leaves(document: Document) -> list[Path]:
    """Return all subschemas, each after those that it leads to, except in cycles."""
    done: dict[Path, None] = {}
    seen: set[Path] = set()
    for origin in document.nodes:
        stack = [(origin, False)]
        while stack:
            path, is_leaving = stack.pop()
            if is_leaving:
                done[path] = None
            elif path not in seen:
                seen.add(path)
                stack.append((path, True))
                stack.extend((step, False) for step in document.nodes[path].steps)
    return list(done)


def _twin(schema: Any, branches: list[Path], forks: list[Path]) -> Any:
    """Return a copy of `schema` that does not explain errors below these branches and references."""
    whole: Any = {"": copy.deepcopy(schema)}
    # The deepest first, so that the paths of the rest stay valid; at the same path, references first.
    for path, is_branch in sorted(
        [*((path, False) for path in forks), *((path, True) for path in branches)],
        key=lambda found: (-len(found[0]), found[1]),
    ):
        *way, last = ("", *path)
        place: Any = whole
        for step in way:
            place = place[step]
        if is_branch:
            place[last] = _unexplained(place[last])
        else:
            node = cast("dict[str, Any]", place[last])
            for keyword in ("$ref", "$dynamicRef"):
                if keyword in node:
                    node["allOf"] = [*node.get("allOf", []), _unexplained({keyword: node.pop(keyword)})]
    return whole[""]


def _unexplained(schema: Any) -> Any:
    # `if` yields a verdict without errors, and still counts for `unevaluated…`.
    return {"if": schema, "else": {"not": True}}
