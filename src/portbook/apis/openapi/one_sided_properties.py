"""Properties of one side in OpenAPI: read-only ones are not sent, write-only ones are not required back.

A caller that sends a read-only property is refused, also where the object allows further members: an API may
do with it what it likes, and a caller that believes to have set it is wrong.

A property may be described in one schema of an `allOf` and required in another, so those are looked at
together.
"""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from portbook.apis.openapi.document_files import DocumentNode, Documents

__all__ = ["Side", "leave_out_other_side", "names_of_other_side"]

Side = Literal["input", "output"]

# How deep `allOf` is followed; a schema that combines itself ends here, too.
_MAX_DEPTH: Final = 4
_KEYWORDS: Final = {"input": "readOnly", "output": "writeOnly"}


def names_of_other_side(documents: Documents, node: DocumentNode, side: Side) -> set[str]:
    """Return the properties of the schema at `node`, and of its `allOf`, that are only for the other side."""
    return _names(documents, node, _KEYWORDS[side], _MAX_DEPTH, set())


def leave_out_other_side(
    documents: Documents, node: DocumentNode, written: dict[str, Any], side: Side
) -> None:
    """Change `written`, the schema at `node`, to one for `side`.

    In an input, read-only properties are neither allowed nor required. In an output, write-only properties
    are not required; an API that returns one all the same breaks nothing.
    """
    if not {"properties", "allOf"} & written.keys():
        return
    other = names_of_other_side(documents, node, side)
    if not other:
        return
    if side == "input" and "properties" in written:
        described = cast("dict[str, Any]", written["properties"])
        written["properties"] = {name: part for name, part in described.items() if name not in other}
        if written.get("additionalProperties") is not False:
            _refuse_names(written, [name for name in described if name in other])
    for schema in (written, *written.get("allOf", [])):
        if isinstance(schema, dict) and "required" in schema:
            given = cast("dict[str, Any]", schema)
            given["required"] = [name for name in given["required"] if name not in other]


def _refuse_names(written: dict[str, Any], names: list[str]) -> None:
    if not names:
        return
    # By name, and not as properties that nothing matches: no agent should think of filling them.
    refused: dict[str, Any] = {"not": {"enum": names}}
    given = written.get("propertyNames")
    written["propertyNames"] = refused if given is None else {"allOf": [given, refused]}


def _names(
    documents: Documents, node: DocumentNode, keyword: str, depth: int, seen: set[tuple[str, str]]
) -> set[str]:
    """Return the properties with a true `keyword`, in a schema and in those of its `allOf`."""
    if (node.file, node.pointer) in seen:  # each schema once: references may fan out
        return set()
    seen.add((node.file, node.pointer))
    found = {
        name
        for name, part in node.at("properties").members.items()
        if documents.resolved(part).at(keyword).value is True
    }
    if depth:
        for inner in node.at("allOf").items:
            found |= _names(documents, documents.resolved(inner), keyword, depth - 1, seen)
    return found
