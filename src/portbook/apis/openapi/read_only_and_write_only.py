"""Properties of one side in OpenAPI: read-only ones are not sent, write-only ones are not required back.

A caller that sends a read-only property is refused, also where the object allows further members: an API may
do with it what it likes, and a caller that believes to have set it is wrong.

A property may be described in one schema and required in another one around it or beside it, so all of those
that apply to the same object are looked at together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, cast

from portbook.apis.openapi.document_files import DocumentNode, Documents

__all__ = [
    "NOTHING_LEFT_OUT",
    "OtherSideNames",
    "Side",
    "leave_out_other_side",
    "left_out_in",
    "names_of_other_side",
]

Side = Literal["input", "output"]

# How deep combined schemas are followed; a schema that combines itself ends here, too.
_MAX_DEPTH: Final = 4
_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_KEYWORDS: Final = {"input": "readOnly", "output": "writeOnly"}


class OtherSideNames(NamedTuple):
    """Properties that a schema has as those of the other side: no schema beside it has to require them."""

    names: frozenset[str]
    in_place: set[tuple[str, str]]
    """The targets of references that are written in place for this: each once, as references may fan out."""

    def is_required_at(self, documents: Documents, target: DocumentNode) -> bool:
        """Return whether a target requires one of them, and so must be written in place, without that."""
        place = (target.file, target.pointer)
        if not self.names or place in self.in_place:
            return False
        if self.names.isdisjoint(_required(documents, target, _MAX_DEPTH, set())):
            return False
        self.in_place.add(place)
        return True


NOTHING_LEFT_OUT: Final = OtherSideNames(frozenset(), set())


def left_out_in(
    documents: Documents, node: DocumentNode, keyword: str, side: Side, around: OtherSideNames
) -> OtherSideNames:
    """Return what no schema of the list `keyword` at `node` has to require.

    Those of `allOf` lie beside everything else at `node`; those of `anyOf` and `oneOf` not beside each other.
    """
    if keyword not in _COMBINED:
        return NOTHING_LEFT_OUT
    combined = _COMBINED if keyword == "allOf" else ("allOf",)
    found = _names(documents, node, _KEYWORDS[side], _MAX_DEPTH, set(), combined)
    if not found and not around.names:
        return NOTHING_LEFT_OUT
    return OtherSideNames(around.names | found, around.in_place if around.names else set())


def names_of_other_side(documents: Documents, node: DocumentNode, side: Side) -> set[str]:
    """Return the properties of the schema at `node`, and of its `allOf`, that are only for the other side."""
    return _names(documents, node, _KEYWORDS[side], _MAX_DEPTH, set())


def leave_out_other_side(
    documents: Documents, node: DocumentNode, written: dict[str, Any], side: Side, around: OtherSideNames
) -> None:
    """Change `written`, the schema at `node`, to one for `side`; `around` is what those around it leave out.

    In an input, read-only properties are neither allowed nor required. In an output, write-only properties
    are not required; an API that returns one all the same breaks nothing.
    """
    if written.keys().isdisjoint(("properties", "required")):
        return
    other = names_of_other_side(documents, node, side)
    if "required" in written:
        is_combined = node.text("$ref") is not None or not written.keys().isdisjoint(_COMBINED)
        beside = (
            _names(documents, node, _KEYWORDS[side], _MAX_DEPTH, set(), _COMBINED) if is_combined else other
        )
        left_out = beside | around.names
        written["required"] = [name for name in written["required"] if name not in left_out]
    if other and side == "input" and "properties" in written:
        described = cast("dict[str, Any]", written["properties"])
        written["properties"] = {name: part for name, part in described.items() if name not in other}
        if written.get("additionalProperties") is not False:
            _refuse_names(written, [name for name in described if name in other])


def _refuse_names(written: dict[str, Any], names: list[str]) -> None:
    if not names:
        return
    # By name, and not as properties that nothing matches: no agent should think of filling them.
    refused: dict[str, Any] = {"not": {"enum": names}}
    given = written.get("propertyNames")
    written["propertyNames"] = refused if given is None else {"allOf": [given, refused]}


def _names(
    documents: Documents,
    node: DocumentNode,
    keyword: str,
    depth: int,
    seen: set[tuple[str, str]],
    combined: tuple[str, ...] = ("allOf",),
) -> set[str]:
    """Return the properties with a true `keyword`, in a schema and in those that it has `combined`."""
    if (node.file, node.pointer) in seen:  # each schema once: references may fan out
        return set()
    seen.add((node.file, node.pointer))
    found = {
        name
        for name, part in node.at("properties").members.items()
        if documents.resolved(part).at(keyword).value is True
    }
    if depth:
        for inner in _beside(documents, node, combined):
            found |= _names(documents, inner, keyword, depth - 1, seen, combined)
    return found


def _required(documents: Documents, node: DocumentNode, depth: int, seen: set[tuple[str, str]]) -> set[str]:
    """Return what a schema requires, and those that it combines."""
    if (node.file, node.pointer) in seen:
        return set()
    seen.add((node.file, node.pointer))
    found = {name.value for name in node.at("required").items if isinstance(name.value, str)}
    if depth:
        for inner in _beside(documents, node, _COMBINED):
            found |= _required(documents, inner, depth - 1, seen)
    return found


def _beside(documents: Documents, node: DocumentNode, combined: tuple[str, ...]) -> Iterator[DocumentNode]:
    """Yield the schemas that apply to the same object: what `node` refers to, and what it has `combined`."""
    if node.text("$ref") is not None:
        yield documents.resolved(node)
    for keyword in combined:
        yield from map(documents.resolved, node.at(keyword).items)
