"""`Subschemas`: the subschemas of a schema, by the places of a document that they apply to. Pure: no I/O.

Several subschemas often apply to one place: behind references, in `allOf`, in several `properties`. A `Place`
is all of them together; from it, the places of a property or an item can be reached.
"""

from __future__ import annotations

import functools
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote, urldefrag

from portbook.errors import Finding
from portbook.model import JSONObject
from portbook.schema.engine import BadSchema, Validator, compile_official
from portbook.schema.references import Document, Path
from portbook.schema.violation_wording import whole_pointer

__all__ = ["EFFORT", "Place", "Subschemas", "matches"]

# The subschemas that apply to a place, all of them; empty for a place where any value is allowed.
Place: TypeAlias = "tuple[Path, ...]"

# The user waits for the result, so an explanation may take long.
EFFORT: Final = 1_000_000

# What all probes of one schema may compile, in subschemas: some seconds. Each compiles the whole schema.
_MAX_COMPILED: Final = 500_000

# What the explanation by a probe costs, in probes.
_EXPLANATION: Final = 5

_UNKNOWN_CAUSE: Final = frozenset({("", "")})

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
        self._explained: set[Place] = set()
        self._spread: dict[tuple[Place, bool], Place] = {}
        self._probes_left = _MAX_COMPILED // max(len(self._document.nodes), 1)

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
        if (place, into_unions) not in self._spread:
            self._spread[place, into_unions] = self._parts_at(place, into_unions=into_unions)
        return self._spread[place, into_unions]

    def _parts_at(self, place: Place, *, into_unions: bool) -> Place:
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
        """Return the JSON Pointer of the keyword that a finding of the whole schema is about.

        A costly explanation comes from a twin of the schema; of its place, the part that the schema has.
        """
        pointer = whole_pointer(self._document.resources.get(finding.resource, ())) + finding.schema_pointer
        here: Any = self.bundle
        known: list[str] = []
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                here = here[int(name) if isinstance(here, list) else name]
            except (LookupError, TypeError, ValueError):
                break
            known.append(name)
        return whole_pointer(known)

    def causes(self, place: Place, value: Any) -> frozenset[tuple[str, str]]:
        """Return why `value` is refused at `place`: the keywords that refuse it, each with its message."""
        validator = self._validators[place] if self.verdict(place, value) is False else None
        if place not in self._explained:  # the first explanation of a probe costs as much as some probes
            self._explained.add(place)
            self._probes_left -= _EXPLANATION
        if validator is None or self._probes_left < 0:
            return _UNKNOWN_CAUSE
        findings = validator.findings_of_own(value, EFFORT)
        return frozenset((each.resource + each.schema_pointer, each.message) for each in findings)

    def _compile(self, place: Place) -> Validator | None:
        self._probes_left -= 1
        if self._probes_left < 0:
            return None
        base = urldefrag(str(self.bundle["$id"])).url
        references = [{"$ref": f"{base}#{quote(whole_pointer(path))}"} for path in place]
        probe: Any = {"$id": "urn:portbook:probe", "allOf": references, "$defs": {"whole": self.bundle}}
        try:
            return compile_official(probe if references else True, "probe")
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
