"""Grades the change of a definition, part by part; of a schema by what it allows. Pure: no I/O.

The comparison of schemas runs both ways: whether everything that was allowed still is, and whether everything
that is allowed already was. Each is proved, or refuted by a value. What is neither counts as breaking.

Inputs are compared by the arguments that they declare, because models send these. Outputs are compared as
they are, because programs ignore members that they do not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from portbook.assets.compat.pattern_comparison import TextLanguages
from portbook.assets.compat.subschemas import LABELS
from portbook.assets.compat.verdict import Comparison, Compatibility, compare
from portbook.canonical import NotJSON, canonical_bytes, fingerprint
from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.pins.on_change import Grade
from portbook.pins.pinned_definitions import is_same_part
from portbook.schema.engine import BadSchema, Validator, compile_schema
from portbook.schema.json_schema_drafts import DRAFT_07, dialect_of
from portbook.schema.references import Document, Path, subschemas_of

__all__ = [
    "Effort",
    "SchemaChange",
    "by_declared_arguments",
    "change_of_input",
    "change_of_output",
    "comparable_schema",
    "declared_properties",
    "grade_of_part",
    "harm_of",
    "with_trusted_hints",
]

# Keywords of a schema that allow and forbid nothing, but act on calls.
#
# A `default` is what clients and models send where nobody says otherwise. An extension may say what a program
# does with an argument: `x-mcp-header` puts it into a header.

_ACTING: Final = frozenset({"default", "readOnly", "writeOnly"})


def act_alike(one: JSONObject, other: JSONObject) -> bool:
    """Return whether two schemas have the same such keywords in the same places."""
    return _acting(one) == _acting(other)


def _acting(schema: JSONObject) -> dict[tuple[Path, str], bytes]:
    nodes = ((path, node.schema) for path, node in Document(schema).nodes.items())
    return {
        (path, keyword): canonical_bytes(value)
        for path, each in nodes
        if isinstance(each, dict)
        for keyword, value in cast("JSONObject", each).items()
        if keyword in _ACTING or keyword.startswith("x-")
    }


# Schemas of definitions in the one dialect that schemas are compared in.
#
# Servers often write draft-07. Most of its schemas mean the same in 2020-12; the others are not compared.

# Keywords of draft-07 that 2020-12 does not have; an `items` that is a list is another.
_OLD: Final = frozenset({"additionalItems", "dependencies"})


def comparable_schema(schema: JSON) -> JSONObject:
    """Return a schema in the dialect of the comparison; a missing one allows everything.

    Raises `BadSchema` where it is not a schema, or not one that can be compared.
    """
    if schema is None or schema is True:
        return {}
    if not isinstance(schema, dict):
        raise _incomparable("must be an object")
    if dialect_of(schema) == DRAFT_07:
        compiled(schema, DRAFT_07)
        schema = {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
        if _has_old_forms(schema):
            raise _incomparable("has keywords of draft-07 that mean something else by now")
    compiled(schema)
    return schema


def compiled(schema: JSONObject, *dialect: str) -> Validator:
    """Return the validator of a schema.

    Raises `BadSchema` where it cannot be compiled.
    """
    # Not through the cache, which only grows: a server could fill it with ever new schemas.
    try:
        return compile_schema(schema, fingerprint(schema), *dialect)
    except NotJSON as error:
        raise _incomparable(str(error)) from None


def _has_old_forms(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    members = cast("JSONObject", schema)
    if isinstance(members.get("items"), list) or not _OLD.isdisjoint(members):
        return True
    if "$ref" in members and not (members.keys() - {"$ref"} <= LABELS):  # draft-07 ignores what is beside it
        return True
    below = [each for _, _, each in subschemas_of(members)]
    for keyword in ("$defs", "definitions"):
        below.extend(cast("JSONObject", members.get(keyword, {})).values())
    return any(map(_has_old_forms, below))


def _incomparable(problem: str) -> BadSchema:
    return BadSchema((Finding("", problem, "", ""),))


# A comparison takes about the square of the number of subschemas: the largest takes a second, and all of one
# list together some seconds. Definitions that people write have far fewer than a hundred each.
_MAX_SUBSCHEMAS: Final = 300
_MAX_EFFORT: Final = 300_000

# A value that shows a change is for a person and a record: a larger one is left out.
_MAX_INSTANCE: Final = 2_048

# Each direction's verdict, first that on what was allowed, then that on what is allowed now.
_GRADES: Final = {
    (Compatibility.COMPATIBLE, Compatibility.COMPATIBLE): Grade.WORDS,
    (Compatibility.COMPATIBLE, Compatibility.BREAKS): Grade.WIDENED,
    (Compatibility.BREAKS, Compatibility.COMPATIBLE): Grade.NARROWED,
    (Compatibility.BREAKS, Compatibility.BREAKS): Grade.BREAKING,
}


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The grade of a change, and what shows it."""

    grade: Grade
    note: str
    """A sentence about the change, without text of either schema."""
    instances: tuple[JSON, ...] = ()
    """A value that is no longer allowed, or one that was not allowed; for a breaking change, both."""


class Effort:
    """What is left to compare schemas with: a server must not keep us busy with a thousand changed tools."""

    def __init__(self) -> None:
        self._left = _MAX_EFFORT
        self.texts = TextLanguages()
        """What is left to be spent on patterns."""

    def suffices_for(self, *schemas: JSONObject) -> bool:
        """Return whether these schemas can be compared, and take what that costs."""
        count = max(len(Document(schema).nodes) for schema in schemas)
        self._left -= count * count
        return count <= _MAX_SUBSCHEMAS and self._left >= 0


def change_of_input(before: JSON, after: JSON, effort: Effort) -> SchemaChange:
    """Return the grade of a change of what a tool takes."""
    try:
        old, new = comparable_schema(before), comparable_schema(after)
        reduced = by_declared_arguments(old), by_declared_arguments(new)
        if reduced[0] is not None and reduced[1] is not None:
            return _graded(reduced[0], reduced[1], effort)
        if declared_properties(old) != declared_properties(new):
            return SchemaChange(Grade.BREAKING, "it declares other arguments, beside rules that combine them")
        return _graded(old, new, effort)
    except BadSchema:
        return _INCOMPARABLE


def change_of_output(before: JSON, after: JSON, effort: Effort) -> SchemaChange:
    """Return the grade of a change of what a tool returns; without a schema, it may return anything."""
    try:
        return _graded(comparable_schema(before), comparable_schema(after), effort)
    except BadSchema:
        return _INCOMPARABLE


def _graded(old: JSONObject, new: JSONObject, effort: Effort) -> SchemaChange:
    if not effort.suffices_for(old, new):
        return SchemaChange(Grade.BREAKING, "there is too much to compare")
    first, second = (old, compiled(old)), (new, compiled(new))
    kept, known = (
        compare(one, other, texts=effort.texts) for one, other in ((first, second), (second, first))
    )
    grade = _GRADES.get((kept.verdict, known.verdict))
    if grade is None:
        return SchemaChange(Grade.BREAKING, "neither a proof nor a value decides what it allows now")
    if grade is Grade.WORDS and not act_alike(old, new):
        return SchemaChange(Grade.ANNOTATIONS, "it allows the same, with another default or extension")
    return SchemaChange(grade, _NOTES[grade], tuple(each for side in (kept, known) for each in _shown(side)))


_INCOMPARABLE: Final = SchemaChange(
    Grade.BREAKING, "one of the two schemas cannot be used, so they cannot be compared"
)

_NOTES: Final = {
    Grade.WORDS: "it is written differently, and allows the same",
    Grade.WIDENED: "it declares more than before, such as this value",
    Grade.NARROWED: "it declares less than before, and no longer this value",
    Grade.BREAKING: "it no longer declares the first value, and now declares the second",
}


def _shown(comparison: Comparison) -> list[JSON]:
    instances = [each.instance for each in comparison.breaks[:1]]
    try:
        return [each for each in instances if len(canonical_bytes(each)) <= _MAX_INSTANCE]
    except NotJSON:
        return []


# The grade of a part of a definition: of its words, its hints, its schemas.

_WORDS: Final = frozenset({"title", "description", "icons", "instructions"})


def grade_of_part(part: str, before: JSON, after: JSON, effort: Effort) -> SchemaChange:
    """Return the grade of a part of a definition that has changed, and why."""
    if part in _WORDS:
        return SchemaChange(Grade.WORDS, "what people and models read has changed")
    if part == "inputSchema":
        return change_of_input(before, after, effort)
    if part == "outputSchema":
        return change_of_output(before, after, effort)
    if part == "arguments":
        return change_of_input(_as_schema(before), _as_schema(after), effort)
    if part == "annotations":
        return _change_of_annotations(_members(before), _members(after))
    return SchemaChange(Grade.ANNOTATIONS, "metadata has changed")


def _change_of_annotations(before: JSONObject, after: JSONObject) -> SchemaChange:
    if harm_of(after) > harm_of(before):
        return SchemaChange(Grade.BREAKING, "the server now declares a worse effect than was approved")
    if is_same_part(_hints(before), _hints(after)):
        return SchemaChange(Grade.WORDS, "what people and models read has changed")
    return SchemaChange(Grade.ANNOTATIONS, "hints have changed")


def _hints(annotations: JSONObject) -> JSONObject:
    return {name: value for name, value in annotations.items() if name != "title"}


def _members(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _as_schema(arguments: JSON) -> JSON:
    """Return the arguments of a prompt as an input schema: they are texts."""
    listed = [_members(each) for each in arguments] if isinstance(arguments, list) else []
    properties: dict[str, Any] = {}
    for each in listed:
        words = {name: each[name] for name in ("title", "description") if isinstance(each.get(name), str)}
        properties[str(each.get("name"))] = {"type": "string", **words}
    required = [str(each.get("name")) for each in listed if each.get("required") is True]
    return cast(
        "JSON",
        {
            "type": "object",
            "properties": properties,
            "required": sorted(set(required)),
            "additionalProperties": False,
        },
    )


# An input schema as a model reads it: by the arguments that it declares.
#
# Most input schemas are open: they allow arguments that they do not declare. To JSON Schema, a new optional
# argument then allows less than before; to a model, which sends what is declared, it allows more. So all
# undeclared arguments of an object are reduced to one of a fixed name, and no others are allowed:
#
# {"properties": {"a": A}}  becomes  {"properties": {"a": A, "undeclared argument": true}, closed}
#
# Two schemas in this form compare as models and people understand them, and openness is still seen.

_UNDECLARED: Final = "undeclared argument"

_OBJECT_KEYWORDS: Final = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}
)
# These apply several schemas to one object: closing each would refuse what they allow together.
_TOGETHER: Final = frozenset(
    {
        "allOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "unevaluatedProperties",
        "$dynamicRef", "propertyNames",
    }
)  # fmt: skip
# These do the same only beside a keyword about objects.
_BESIDE: Final = frozenset({"anyOf", "oneOf", "$ref"})

# A reference to what closing replaces.
_CLOSED_AWAY: Final = "/additionalProperties"

_ONE: Final = frozenset({"items", "contains", "additionalProperties"})
_MANY: Final = frozenset({"anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})


class _NotReducible(Exception):
    """A schema in which declared arguments cannot be told from its other rules."""


def by_declared_arguments(schema: JSONObject) -> JSONObject | None:
    """Return a valid `schema` in the reduced form, or None where it has none."""
    try:
        return cast("JSONObject", _reduced(schema))
    except _NotReducible:
        return None


def _reduced(schema: JSON) -> JSON:
    if not isinstance(schema, dict):
        return schema
    if _CLOSED_AWAY in str(schema.get("$ref", "")):
        raise _NotReducible
    is_object = schema.get("type") == "object" or not _OBJECT_KEYWORDS.isdisjoint(schema)
    if not _TOGETHER.isdisjoint(schema) or (is_object and not _BESIDE.isdisjoint(schema)):
        raise _NotReducible
    below: JSONObject = {keyword: _below(keyword, value) for keyword, value in schema.items()}
    return _closed(below) if is_object else below


def _below(keyword: str, value: Any) -> Any:
    if keyword in _ONE:
        return _reduced(value)
    if keyword in _MANY and isinstance(value, list):
        return [_reduced(each) for each in cast("list[JSON]", value)]
    if keyword in _NAMED and isinstance(value, dict):
        return {name: _reduced(each) for name, each in cast("JSONObject", value).items()}
    return value


def _closed(schema: JSONObject) -> JSONObject:
    rest = schema.get("additionalProperties", True)
    declared = cast("JSONObject", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    properties: JSONObject = {**dict.fromkeys(required, rest), **declared}
    if _UNDECLARED in properties:  # a server must not hide an argument behind the name for all others
        raise _NotReducible
    if rest is not False:
        properties[_UNDECLARED] = rest
    return {**schema, "properties": properties, "additionalProperties": False}


def declared_properties(schema: JSONObject) -> frozenset[Path]:
    """Return the paths of all properties that a valid schema declares, at any depth."""
    return frozenset(path for path in Document(schema).nodes if path[-2:-1] == ("properties",))


# Which hints of a server are believed: those that a person approved, and stricter ones.
#
# A server says of itself whether a tool only reads. Until a person has approved that, it may make an effect
# stricter, never looser: a changed definition that is accepted keeps the worse effect of the two, and one
# that was never approved counts as destructive.


# The hints that an effect follows from, by the effect.
_EFFECT_HINTS: Final = ("readOnlyHint", "destructiveHint")
_NEVER_APPROVED: Final[JSONObject] = {}


def harm_of(annotations: JSON) -> int:
    """Return the effect that annotations declare, by MCP's own defaults: 0 reads, 1 writes, 2 destroys."""
    hints = annotations if isinstance(annotations, dict) else {}
    if hints.get("readOnlyHint") is True:
        return 0
    return 1 if hints.get("destructiveHint") is False else 2


def with_trusted_hints(observed: JSONObject, approved: JSONObject | None) -> JSONObject:
    """Return the observed parts of a tool, with no better effect than was approved; None for never."""
    before, after = (approved or _NEVER_APPROVED).get("annotations"), observed.get("annotations")
    if harm_of(before) <= harm_of(after):
        return observed
    hints = {name: value for name, value in _members(after).items() if name not in _EFFECT_HINTS}
    kept = {name: value for name, value in _members(before).items() if name in _EFFECT_HINTS}
    return {**observed, "annotations": {**hints, **kept}}
