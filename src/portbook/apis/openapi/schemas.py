"""Converts schemas of an OpenAPI document to self-contained JSON Schema 2020-12.

A reference becomes one into `$defs`. Each target is written once for the whole document, and shared by all
schemas that refer to it, so recursive schemas work, no reference leaves a schema, and a large document stays
small. Forms of other drafts are translated; documentation (`example`, `xml`, `x-…`) is left out.

A pattern that cannot be matched in linear time, or is none, moves into the description: it is no longer
checked, and whoever reads the schema still knows it.

Read-only properties are not sent, write-only ones are not required back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, cast

from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.translated_keywords import DROPPED, renew_bounds, translated, with_null
from portbook.model import JSONObject
from portbook.schema.engine import is_usable_pattern
from portbook.schema.evaluation_cost import DefinitionWeights, referred_names
from portbook.tools.tool_names import name_digest

__all__ = [
    "NOTHING_LEFT_OUT",
    "OtherSideNames",
    "SchemaWriter",
    "SchemaWriters",
    "Side",
    "leave_out_other_side",
    "left_out_in",
    "names_of_other_side",
]

_ONE: Final = frozenset(
    {
        "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames",
        "then", "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS: Final = frozenset({"dependentSchemas", "patternProperties", "properties"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_COMPONENTS: Final = "/components/schemas/"
# References whose target depends on where they are used; here it is always the nearest schema around them.
_DYNAMIC: Final = {"$recursiveRef": "$recursiveAnchor", "$dynamicRef": "$dynamicAnchor"}
# A pattern in the slashes of JavaScript: they are no part of it.
_IN_SLASHES: Final = re.compile(r"/(\^.*\$)/")


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


class SchemaWriter:
    """Converts the input or output schemas of one document."""

    def __init__(self, documents: Documents, version: str, side: Side) -> None:
        """Use the OpenAPI `version`, `3.0` or `3.1`; input leaves out read-only properties."""
        self._documents = documents
        self._is_old = version == "3.0"
        self._side: Side = side
        self._names: dict[tuple[str, str], str] = {}
        self._pending: dict[str, DocumentNode] = {}
        self._definitions: dict[str, Any] = {}
        self._weights = DefinitionWeights(self._definitions)
        self._shared_definitions: dict[int, dict[str, Any]] = {}
        self._around: list[DocumentNode] = []
        """The schemas around the one being written, for references to the nearest of them."""
        self.unchecked_patterns: list[str] = []
        """The places of patterns that are not checked."""

    def write(self, node: DocumentNode, left_out: OtherSideNames = NOTHING_LEFT_OUT) -> Any:
        """Return the schema at `node`, which does not require what is `left_out`.

        `with_definitions` adds the targets of its references.

        Raises `BadOpenAPI` for a reference without a target.
        """
        value = node.value
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            raise node.bad("must be a schema")
        self._around.append(node)
        try:
            return self._written(node, value, left_out)
        finally:
            self._around.pop()

    def with_definitions(self, schema: Any) -> Any:
        """Return `schema` with all definitions that it refers to.

        Raises `BadOpenAPI` for a reference without a target.
        """
        needed, found = list(referred_names(schema)), set[str]()
        while needed:
            name = needed.pop()
            if name in found:
                continue
            found.add(name)
            if name in self._pending:
                # Taken out only when it is written: what fails here fails for everybody who refers to it.
                self._definitions[name] = self.write(self._pending[name])
                del self._pending[name]
            needed.extend(self._weights.needs_of(name))
        if not found or not isinstance(schema, dict):
            return schema
        return {**cast("dict[str, Any]", schema), "$defs": self._shared(found)}

    def _shared(self, names: set[str]) -> dict[str, Any]:
        """Return the definitions of these names: one object for all schemas that need the same ones.

        In most large documents nearly everything refers to nearly everything.
        """
        key = hash(frozenset(names))  # not the names themselves: they would take as much room again
        shared = self._shared_definitions.get(key)
        if shared is None or shared.keys() != names:
            shared = {name: self._definitions[name] for name in sorted(names)}
            self._shared_definitions[key] = shared
        return shared

    def problem_of(self, schema: Any) -> str | None:
        """Return why a schema `with_definitions` must not be compiled, or None where it may be."""
        return self._weights.problem_of(schema)

    def _reference_to(self, target: DocumentNode) -> dict[str, Any]:
        key = (target.file, target.pointer)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._name_for(target)
            self._pending[name] = target  # written later: it may refer to itself, or start a long chain
        return {"$ref": f"#/$defs/{name}"}

    def _name_for(self, target: DocumentNode) -> str:
        """Return the name of a definition: the component's own, if that can be one, or with a digest.

        It does not depend on which other definitions there are, nor on their order.
        """
        component = target.pointer.removeprefix(_COMPONENTS)
        is_own = target.file == self._documents.entry and component != target.pointer
        if is_own and _PLAIN_NAME.fullmatch(component):
            return component
        last = target.pointer.rpartition("/")[2] or target.file
        return f"{_UNSAFE.sub('_', last)}_{name_digest(f'{target.file}#{target.pointer}')}"

    def _written(self, node: DocumentNode, value: JSONObject, left_out: OtherSideNames) -> Any:
        reference = node.text("$ref")
        if reference is not None:
            target = self._documents.target(node, reference)
            if left_out.is_required_at(self._documents, target):
                referring: dict[str, Any] = {"allOf": [self.write(target, left_out)]}
            else:
                referring = self._reference_to(target)
            # In OpenAPI 3.0, keywords beside a reference are ignored; these two change no verdict on a value
            # that is not null.
            beside = {} if self._is_old else self._keywords(node, value, left_out)
            if isinstance(words := value.get("description"), str):
                beside["description"] = words
            if "allOf" in beside and "allOf" in referring:
                referring["allOf"] += beside["allOf"]
            return with_null(value, {**beside, **referring})
        written = self._keywords(node, value, left_out)
        for keyword, anchor in _DYNAMIC.items():
            if isinstance(value.get(keyword), str):
                written.update(self._reference_to(self._nearest(anchor)))
        return with_null(value, written)

    def _nearest(self, anchor: str) -> DocumentNode:
        """Return the nearest schema around the one being written that has `anchor`, or the outermost."""
        marked = (node for node in reversed(self._around) if node.at(anchor).value)
        return next(marked, self._around[0])

    def _keywords(self, node: DocumentNode, value: JSONObject, around: OtherSideNames) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for key, given in value.items():
            if key in _ONE:
                written.update(self._one(key, node.at(key)))
            elif key in _LISTS:
                left_out = left_out_in(self._documents, node, key, self._side, around)
                written.update(self._list(key, node.at(key), left_out))
            elif key in _MAPS:
                written.update(self._map(key, node.at(key)))
            elif key == "dependencies":
                written.update(self._dependencies(node.at(key)))
            elif key != "pattern" and (known := translated(key, given)) is not DROPPED:
                written[key] = known
        if "pattern" in value:
            self._check_pattern(node, value["pattern"], written)
        if "patternProperties" in written:
            self._check_names(node, written)
        if "properties" in written:
            self._require(node, written)
        leave_out_other_side(self._documents, node, written, self._side, around)
        renew_bounds(value, written)
        return written

    def _one(self, key: str, child: DocumentNode) -> Iterator[tuple[str, Any]]:
        if isinstance(child.value, dict | bool):
            yield key, self.write(child)
        elif key == "items" and isinstance(child.value, list):  # the form of earlier drafts
            yield from self._list("prefixItems", child, NOTHING_LEFT_OUT)
        elif child.value in ("true", "false"):
            yield key, child.value == "true"

    def _list(self, key: str, child: DocumentNode, left_out: OtherSideNames) -> Iterator[tuple[str, Any]]:
        items = [child] if isinstance(child.value, dict) else child.items
        written = [self.write(item, left_out) for item in items if isinstance(item.value, dict | bool)]
        if written:
            yield key, written

    def _map(self, key: str, child: DocumentNode) -> Iterator[tuple[str, Any]]:
        if isinstance(child.value, dict):
            # A member without a value is how YAML writes one that may be anything.
            pairs = child.members.items()
            yield key, {name: True if part.value is None else self.write(part) for name, part in pairs}

    def _dependencies(self, child: DocumentNode) -> Iterator[tuple[str, Any]]:
        """Yield `dependencies` of earlier drafts as the two keywords that it has become."""
        needs = translated("dependentRequired", child.value)
        if needs is not DROPPED and needs:
            yield "dependentRequired", needs
        schemas = {n: self.write(part) for n, part in child.members.items() if isinstance(part.value, dict)}
        if schemas:
            yield "dependentSchemas", schemas

    def _check_pattern(self, node: DocumentNode, pattern: Any, written: dict[str, Any]) -> None:
        if not isinstance(pattern, str):
            return
        in_slashes = _IN_SLASHES.fullmatch(pattern)
        plain = pattern if in_slashes is None else in_slashes[1]
        if is_usable_pattern(plain):
            written["pattern"] = plain
            return
        self.unchecked_patterns.append(f"{node.file}#{node.pointer}/pattern")
        words = written.get("description")
        note = f"Pattern, not checked: {pattern}"
        written["description"] = f"{words}\n\n{note}" if words else note

    def _check_names(self, node: DocumentNode, written: dict[str, Any]) -> None:
        """Leave out the patterns of names that cannot be used; such names may then have any value."""
        given = cast("dict[str, Any]", written["patternProperties"])
        usable = {pattern: schema for pattern, schema in given.items() if is_usable_pattern(pattern)}
        if len(usable) == len(given):
            return
        self.unchecked_patterns.append(f"{node.file}#{node.pointer}/patternProperties")
        written["patternProperties"] = usable
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            written.pop(keyword, None)

    def _require(self, node: DocumentNode, written: dict[str, Any]) -> None:
        """Require the properties that say so themselves, as in the first version of Swagger."""
        parts = node.at("properties").members.items()
        named = [name for name, part in parts if part.at("required").value is True]
        if named:
            written["required"] = list(dict.fromkeys([*written.get("required", []), *named]))


class SchemaWriters:
    """The writers of one document: one for arguments, one for results."""

    __slots__ = ("input", "output")

    def __init__(self, documents: Documents, version: str) -> None:
        self.input = SchemaWriter(documents, version, "input")
        self.output = SchemaWriter(documents, version, "output")

    @property
    def unchecked_patterns(self) -> list[str]:
        """The places of patterns that are not checked, each once."""
        return sorted({*self.input.unchecked_patterns, *self.output.unchecked_patterns})


# Properties of one side in OpenAPI: read-only ones are not sent, write-only ones are not required back.
#
# A caller that sends a read-only property is refused, also where the object allows further members: an API
# may do with it what it likes, and a caller that believes to have set it is wrong.
#
# A property may be described in one schema and required in another one around it or beside it, so all of
# those that apply to the same object are looked at together.

Side = Literal["input", "output"]

# How deep combined schemas are followed; a schema that combines itself ends here, too.
_MAX_DEPTH: Final = 4
_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_KEYWORDS: Final = {"input": "readOnly", "output": "writeOnly"}


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
