"""Schemas of definitions in the one dialect that schemas are compared in. Pure: no I/O.

Servers often write draft-07. Most of its schemas mean the same in 2020-12; the others are not compared.
"""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.assets.compat.equivalence import LABELS
from portbook.canonical import NotJSON, fingerprint
from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.schema.dialects import DRAFT_07, dialect_of
from portbook.schema.engine import BadSchema, Validator, compile_schema
from portbook.schema.references import subschemas_of

__all__ = ["comparable_schema", "compiled"]

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
