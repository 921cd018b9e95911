"""`Subschemas`: the subschemas of a schema, by the places of a document that they apply to. Pure: no I/O.

Several subschemas often apply to one place: behind references, in `allOf`, in several `properties`. A `Place`
is all of them together; from it, the places of a property or an item can be reached.
"""

from __future__ import annotations

import functools
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote, urldefrag

from portbook.canonical import fingerprint
from portbook.errors import Finding
from portbook.model import JSONObject
from portbook.schema.engine import BadSchema, Validator, compile_official
from portbook.schema.messages import whole_pointer
from portbook.schema.references import Document, Path

__all__ = ["EFFORT", "Place", "Subschemas", "matches"]

# The subschemas that apply to a place, all of them; empty for a place where any value is allowed.
Place: TypeAlias = "tuple[Path, ...]"

# The user waits for the result, so an explanation may take long.
EFFORT: Final = 1_000_000

_NAMELESS: Final = "urn:portbook:nameless"


class Subschemas:
    """One side of a comparison: a compiled, self-contained schema."""

    root: Final[Place] = ((),)

    def __init__(self, bundle: JSONObject, whole: Validator) -> None:
        # It needs an address, so that a probe can refer to its parts.
        self.bundle = bundle if isinstance(bundle.get("$id"), str) else {**bundle, "$id": _NAMELESS}
        self.whole = whole
        self._document = Document(self.bundle)
        self._document.resolve()
        self._validators: dict[Place, Validator | None] = {}

    def at(self, path: Path) -> Any:
        """Return the subschema at `path`."""
        return self._document.nodes[path].schema

    def members_at(self, place: Place) -> list[JSONObject]:
        """Return the subschemas of `place` that are objects."""
        return [cast("JSONObject", part) for part in map(self.at, place) if isinstance(part, dict)]

    def targets(self, path: Path) -> list[Path]:
        """Return the targets of the references of the subschema at `path`."""
        return self._document.nodes[path].targets

    @property
    def has_dynamic_references(self) -> bool:
        """Return whether a subschema has a `$dynamicRef`."""
        return any(
            keyword == "$dynamicRef" for node in self._document.nodes.values() for keyword, _ in node.refs
        )

    def knows(self, path: Path) -> bool:
        """Return whether there is a subschema at `path`."""
        return path in self._document.nodes

    def spread(self, place: Place, *, into_unions: bool = False) -> Place:
        """Return all parts that apply at `place`; with `into_unions`, also the branches of unions."""
        found: dict[Path, None] = {}
        waiting = list(reversed(place))
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            found[path] = None
            schema = self.at(path)
            if isinstance(schema, dict):
                waiting.extend(reversed(self.targets(path)))
                keywords = ("allOf", "anyOf", "oneOf") if into_unions else ("allOf",)
                for keyword in keywords:
                    branches = cast("list[Any]", schema.get(keyword, []))  # pyright: ignore[reportUnknownMemberType] # schemas are Any
                    waiting.extend((*path, keyword, at) for at in reversed(range(len(branches))))
        return tuple(found)

    def property_at(self, place: Place, name: str) -> Place:
        """Return the place of one property of the objects at `place`."""
        below: list[Path] = []
        for path in self.spread(place):
            schema = self.at(path)
            if not isinstance(schema, dict):
                continue
            members = cast("JSONObject", schema)
            named = [(*path, "properties", name)] if name in _members(members, "properties") else []
            matching = [
                (*path, "patternProperties", pattern)
                for pattern in _members(members, "patternProperties")
                if matches(pattern, name)
            ]
            below += [*named, *matching]
            if not named and not matching and "additionalProperties" in members:
                below.append((*path, "additionalProperties"))
        return tuple(below)

    def item_at(self, place: Place, index: int) -> Place:
        """Return the place of one item of the arrays at `place`."""
        below: list[Path] = []
        for path in self.spread(place):
            schema = self.at(path)
            if isinstance(schema, dict):
                members = cast("JSONObject", schema)
                before = len(cast("list[Any]", members.get("prefixItems", [])))
                if index < before:
                    below.append((*path, "prefixItems", index))
                elif "items" in members:
                    below.append((*path, "items"))
        return tuple(below)

    def allows(self, place: Place, value: Any) -> bool:
        """Return whether `value` is allowed at `place`; true where that is unknown."""
        return self.verdict(place, value) is not False

    def verdict(self, place: Place, value: Any) -> bool | None:
        """Return whether `value` is allowed at `place`, or None where that is unknown."""
        if place not in self._validators:
            self._validators[place] = self._compile(place)
        validator = self._validators[place]
        return None if validator is None else validator.allows(value)

    def place_of(self, finding: Finding) -> str:
        """Return the JSON Pointer of the keyword that a finding of the whole schema is about."""
        return whole_pointer(self._document.resources.get(finding.resource, ())) + finding.schema_pointer

    def causes(self, place: Place, value: Any) -> frozenset[tuple[str, str]]:
        """Return why `value` is refused at `place`: the keywords that refuse it, each with its message."""
        validator = self._validators[place] if self.verdict(place, value) is False else None
        findings = () if validator is None else validator.findings_of_own(value, EFFORT)
        return frozenset((each.resource + each.schema_pointer, each.message) for each in findings)

    def _compile(self, place: Place) -> Validator | None:
        base = urldefrag(str(self.bundle["$id"])).url
        references = [{"$ref": f"{base}#{quote(whole_pointer(path))}"} for path in place]
        probe: Any = {"$id": "urn:portbook:probe", "allOf": references, "$defs": {"whole": self.bundle}}
        try:
            return compile_official(probe if references else True, fingerprint(probe))
        except BadSchema:
            return None


def _members(schema: JSONObject, keyword: str) -> JSONObject:
    members = schema.get(keyword)
    return members if isinstance(members, dict) else {}


@functools.cache
def _pattern(pattern: str) -> Validator:
    return compile_official({"pattern": pattern}, pattern)


def matches(pattern: str, name: str) -> bool:
    """Return whether a property of that name is one that `pattern` is about."""
    return _pattern(pattern).allows(name)  # the same engine that validates with it
