"""A cache of compiled validators: one per schema fingerprint in the whole process.

The same schema from two files is one validator, compiled once and shared by all doors.
"""

from __future__ import annotations

from typing import Any

from portbook.canonical import NotJSON, fingerprint
from portbook.errors import Finding
from portbook.schema.engine import BadSchema, Validator, compile_official, compile_schema

__all__ = ["validator_for"]

# Grows with the served schemas, which are known at start; callers cannot add to it.
_compiled: dict[str, Validator] = {}


def validator_for(schema: Any, *, is_known: bool = False) -> Validator:
    """Return the validator of `schema`, compiled on first use; `is_known` if it is known to compile.

    Raises `BadSchema` where it cannot be compiled.
    """
    try:
        key = fingerprint(schema)
    except NotJSON as error:
        raise BadSchema((Finding("", str(error), "json", ""),)) from None
    validator = _compiled.get(key)
    if validator is None:
        # Two threads may compile the same schema at once; with setdefault both use the first one.
        make = compile_official if is_known else compile_schema
        validator = _compiled.setdefault(key, make(schema, key))
    return validator
