"""What explaining a violation can cost, and a blunt twin of a schema for where that is too much.

A verdict is cheap: the library remembers what it has evaluated. An explanation is not. It lists every error,
at some 15 µs each, before it hands out the first; a union's error holds those of all its branches, each with
everything below it; and nothing is remembered, so that a schema that comes back to itself in two ways doubles
the work with each level of the document: minutes for a message of 300 bytes.

The twin gives the same verdicts and stops explaining where that begins: at the branches of a union, and where
a circle can be walked in more than one way. Pure: no I/O.
"""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple, cast

from portbook.schema.references import Document, Path

__all__ = ["Explanation", "explanation_of"]

# The costs of an explanation, in bytes of the document times evaluations of one value: a tenth of a second.
_MAX_COST: Final = 32_768

# However simple its schema, every two bytes of a document may have an error of their own.
_MAX_BYTES: Final = 4_096

_UNIONS: Final = ("anyOf", "oneOf")


class Explanation(NamedTuple):
    """How to explain what a schema does not allow."""

    max_bytes: int
    """Documents of at most so many bytes are explained in full; of others the first violation is told."""
    twin: Any
    """The schema to find that first violation with, or None where its own will do."""


def explanation_of(schema: Any, dialect: str) -> Explanation:
    """Return how to explain what `schema`, which was compiled, does not allow."""
    document = Document(schema, dialect)
    document.resolve()
    circles = _circles(document)
    forks = _forks(document, circles)
    branches = [
        (*path, keyword, at)
        for path, node in document.nodes.items()
        for keyword in _UNIONS
        for at in range(_length(node.schema, keyword))
    ]
    if not branches and not forks:
        return Explanation(min(_MAX_BYTES, _MAX_COST // _cost(document, [])), None)
    is_endless = bool(forks) or any(path[:-2] in circles for path in branches)
    max_bytes = 0 if is_endless else min(_MAX_BYTES, _MAX_COST // _cost(document, branches))
    return Explanation(max_bytes, _twin(schema, branches, forks))


def _length(schema: Any, keyword: str) -> int:
    return len(cast("dict[str, Any]", schema).get(keyword, ())) if isinstance(schema, dict) else 0


def _circles(document: Document) -> dict[Path, int]:
    """Return the subschemas that lead back to themselves, each with its circle's number (Tarjan, 1972)."""
    order: dict[Path, int] = {}
    lowest: dict[Path, int] = {}
    waiting: list[Path] = []
    is_waiting: set[Path] = set()
    circles: dict[Path, int] = {}
    for origin in document.nodes:
        stack: list[tuple[Path, int]] = [] if origin in order else [(origin, 0)]
        while stack:
            path, at = stack.pop()
            steps = document.nodes[path].steps
            if at == 0:
                order[path] = lowest[path] = len(order)
                waiting.append(path)
                is_waiting.add(path)
            else:
                lowest[path] = min(lowest[path], lowest[steps[at - 1]])
            while at < len(steps) and steps[at] in order:
                if steps[at] in is_waiting:
                    lowest[path] = min(lowest[path], order[steps[at]])
                at += 1
            if at < len(steps):
                stack += [(path, at + 1), (steps[at], 0)]
            elif lowest[path] == order[path]:
                members = [waiting.pop()]
                while members[-1] != path:
                    members.append(waiting.pop())
                is_waiting.difference_update(members)
                if len(members) > 1 or path in steps:
                    circles.update(dict.fromkeys(members, order[path]))
    return circles


def _forks(document: Document, circles: dict[Path, int]) -> list[Path]:
    """Return the references of every circle that one value can go around in more than one way.

    The branches of a union are not counted: the twin does not explain them anyway.
    """
    forked: set[int] = set()
    for path, circle in circles.items():
        node = document.nodes[path]
        same = [step for step in node.same if circles.get(step) == circle and not _is_branch(step, path)]
        keywords = [str(step[len(path)]) for step in node.parts if circles.get(step) == circle]
        if len(same) + _ways(keywords) > 1:
            forked.add(circle)
    return [
        path
        for path, circle in circles.items()
        if circle in forked and not {"$ref", "$dynamicRef"}.isdisjoint(document.nodes[path].schema)
    ]


def _is_branch(path: Path, of: Path) -> bool:
    return path[:-2] == of and path[-2] in _UNIONS


def _ways(keywords: list[str]) -> int:
    """Return by how many of these keywords one part of a value can be reached."""
    # Of these, only one looks at any one part.
    once = {"properties", "additionalProperties", "unevaluatedProperties"}
    members = bool(once & set(keywords)) + keywords.count("patternProperties")
    items = bool({"prefixItems", "items", "unevaluatedItems"} & set(keywords)) + ("contains" in keywords)
    return max(members, items)


def _cost(document: Document, branches: list[Path]) -> int:
    """Return the most errors that one value can have, those below the branches of a union among them."""
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
    """Return all subschemas, each after those that it leads to, as far as there are no circles."""
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
    """Return a copy of `schema` that does not explain what is below these branches and references."""
    whole: Any = {"": copy.deepcopy(schema)}
    # From the inside out, so that the way to each is still as it was; what stands in the same place first.
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
    # `if` asks for a verdict only, and still counts for `unevaluated…`.
    return {"if": schema, "else": {"not": True}}
