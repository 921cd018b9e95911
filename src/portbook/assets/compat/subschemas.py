"""`Subschemas`: the subschemas of a schema, by the places of a document that they apply to. Pure: no I/O.

Several subschemas often apply to one place: behind references, in `allOf`, in several `properties`. A
`Place` is all of them together; from it, the places of a property or an item can be reached.

- `Equivalence`: whether two subschemas are equal, ignoring labels and the names of references.
- `types_of`, `listed_values`, `bounds_of`: what subschemas state of their values.
"""

from __future__ import annotations

import functools
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote, urldefrag

from portbook.canonical import canonical_bytes
from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator, compile_official
from portbook.schema.references import Document, Path
from portbook.schema.violation_wording import whole_pointer

__all__ = [
    "EFFORT",
    "LABELS",
    "TYPES",
    "Equivalence",
    "Place",
    "Subschemas",
    "bounds_of",
    "forms",
    "is_exact",
    "is_same_value",
    "listed_values",
    "matches",
    "types_at",
    "types_of",
]

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


# Subschemas that are written alike.

# Keywords that name or explain a schema, and do not constrain values.
LABELS: Final = frozenset(
    {
        "$id", "$schema", "$defs", "definitions", "$anchor", "$dynamicAnchor", "$comment", "$vocabulary",
        "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
    }
)  # fmt: skip

# Keywords that hold values, never schemas, even if a reference points there.
_VALUES: Final = frozenset({"const", "enum"})


class Equivalence:
    """Decides whether two subschemas are equal, including all that they refer to."""

    def __init__(self, new: Subschemas, old: Subschemas) -> None:
        self._new = new
        self._old = old
        self._assumed: set[tuple[Path, Path]] = set()

    def holds(self, new: Path, old: Path, keywords: tuple[str, ...] | None = None) -> bool:
        """Return whether they are equal; with `keywords`, only in these."""
        if (new, old) in self._assumed:
            return True
        ours, theirs = self._new.at(new), self._old.at(old)
        if not isinstance(ours, dict) or not isinstance(theirs, dict):
            return ours is theirs
        if keywords is None:
            self._assumed.add((new, old))
            if not self._same_targets(new, old):
                return False
        left = _words(cast("JSONObject", ours), keywords)
        right = _words(cast("JSONObject", theirs), keywords)
        return left.keys() == right.keys() and all(
            is_same_value(left[name], right[name])
            if name in _VALUES
            else self._same_value((*new, name), (*old, name), left[name], right[name])
            for name in left
        )

    def _same_targets(self, new: Path, old: Path) -> bool:
        ours, theirs = self._new.targets(new), self._old.targets(old)
        return len(ours) == len(theirs) and all(map(self.holds, ours, theirs))

    def _same_value(self, new: Path, old: Path, left: JSON, right: JSON) -> bool:
        if self._new.knows(new) and self._old.knows(old):
            return self.holds(new, old)
        if new[-1] == "$ref" and self._new.knows(new[:-1]) and self._new.targets(new[:-1]):
            return True  # their targets were compared
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(
                self._same_value((*new, name), (*old, name), left[name], right[name]) for name in left
            )
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(
                self._same_value((*new, at), (*old, at), left[at], right[at]) for at in range(len(left))
            )
        return is_same_value(left, right)


def _words(part: JSONObject, keywords: tuple[str, ...] | None) -> JSONObject:
    """Return the members of a part with these keywords, or all except its labels."""
    is_meant = LABELS.isdisjoint if keywords is None else set(keywords).issuperset
    return {name: value for name, value in part.items() if is_meant((name,))}


def plain(value: JSON) -> JSON:
    """Return `value` with every integral number as an int: 1 and 1.0 are equal in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def is_same_value(left: JSON, right: JSON) -> bool:
    """Return whether two values are equal in JSON Schema."""
    return canonical_bytes(plain(left)) == canonical_bytes(plain(right))


# What subschemas state: types, lists, bounds.

TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

# From here on, arithmetic may distinguish an integer from the float that equals it.
_EXACT: Final = 2**53


def types_of(part: JSONObject) -> frozenset[str]:
    """Return the types that one part allows by its `type`, `enum` or `const`."""
    types = TYPES
    if "type" in part:
        said = part["type"]
        types = frozenset(cast("list[str]", said) if isinstance(said, list) else [cast("str", said)])
        if "number" in types:
            types |= {"integer"}
    if "enum" in part or "const" in part:
        listed = cast("list[JSON]", part["enum"]) if "enum" in part else [part["const"]]
        types &= frozenset(map(_kind, listed))
    return types


def types_at(schemas: Subschemas, place: Place) -> frozenset[str]:
    """Return the types of values that all parts of `place` together allow."""
    types = TYPES
    for part in schemas.members_at(place):
        types &= types_of(part)
    return types


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    by_type: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return by_type.get(type(value), "null")


def is_exact(value: JSON) -> bool:
    """Return whether every number in `value` is exact both as an integer and as a float."""
    if isinstance(value, list):
        return all(map(is_exact, value))
    if isinstance(value, dict):
        return all(map(is_exact, value.values()))
    return not isinstance(value, int | float) or abs(value) < _EXACT


def forms(value: JSON) -> tuple[JSON, JSON]:
    """Return `value` with integral numbers as ints, and `value` with all numbers as floats."""
    return plain(value), _floated(value)


def _floated(value: JSON) -> JSON:
    """Return `value` with every number as a float, which is equal in JSON Schema."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [_floated(item) for item in value]
    if isinstance(value, dict):
        return {name: _floated(item) for name, item in value.items()}
    return value


def listed_values(part: JSONObject, keyword: str) -> frozenset[bytes]:
    """Return the values that `enum` or `const` of a part lists, as bytes that are equal where they are."""
    listed = cast("list[JSON]", part[keyword]) if keyword == "enum" else [part[keyword]]
    return frozenset(canonical_bytes(plain(value)) for value in listed)


def bounds_of(part: JSONObject, keywords: tuple[str, ...], sign: int) -> list[tuple[float, bool]]:
    """Return a part's bounds in one direction; a larger one is stricter."""
    found: list[tuple[float, bool]] = []
    for keyword in keywords:
        bound = part.get(keyword)
        if isinstance(bound, int | float):
            found.append((sign * bound, keyword.startswith("exclusive")))
    return found
