"""A cache of compiled validators: one per schema fingerprint in the whole process.

The same schema from two files is one validator, compiled once and shared by all doors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from portbook.canonical import NotJSON, fingerprint
from portbook.errors import Finding
from portbook.schema.engine import BadSchema, Validator, compile_official, compile_schema

__all__ = ["LateValidator", "NotCompiled", "validator_for"]

# `LateValidator`: a validator that is compiled when it is first used.
#
# For schemas that are known to compile: those that Portbook ships (a test compiles them all), and those of an
# imported document, whose parts were checked. A schema of the operator is compiled at once, so that a mistake
# in it stops the start.


class NotCompiled(RuntimeError):
    """A schema that was known to compile does not.

    Not a `ValueError`, which would mean that the value is wrong, and not the schema.
    """


class _Compiled(Validator):
    """What a late validator becomes with its first use: one whose fields are read without a detour."""

    __slots__ = ("_compile",)


class LateValidator(Validator):
    """A validator that takes the place of the one that `compile` returns."""

    __slots__ = ("_compile",)

    def __init__(self, compile: Callable[[], Validator]) -> None:  # noqa: A002 - what it does
        self._compile = compile

    def __getattr__(self, name: str) -> Any:
        """Fill the fields of a validator when the first of them is read; two threads may both do it.

        Raises `NotCompiled` where the schema does not compile after all.
        """
        if name not in Validator.__slots__:
            raise AttributeError(name)
        try:
            made = self._compile()
        except ValueError as error:
            raise NotCompiled(str(error)) from error
        for field in Validator.__slots__:
            setattr(self, field, getattr(made, field))
        self.__class__ = _Compiled  # type: ignore[assignment]  # of the same layout
        return getattr(made, name)


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
