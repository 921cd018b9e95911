"""A rule's condition on one argument: a pointer and a JSON Schema for what stands there. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from portbook.model import JSONObject
from portbook.policy.arguments import Gap, find
from portbook.policy.types import types_of
from portbook.schema.engine import Validator

__all__ = ["Condition"]


@dataclass(frozen=True, slots=True)
class Condition:
    """What must stand at one place in the arguments."""

    pointer: str
    segments: tuple[str, ...]
    schema: JSONObject | bool
    validator: Validator
    types: frozenset[str] | None
    """The JSON types that the schema speaks of; None where it speaks of every one."""

    def holds(self, arguments: JSONObject, input_schema: JSONObject, *, is_cautious: bool) -> bool:
        """Return whether the condition is met; `is_cautious` for rules that stop calls.

        1. Where nothing stands there, the default that the tool's schema names is what the tool will see.
        2. Where the tool may fill the place with a default that nobody wrote down, caution assumes the
           worst. Where the tool knows no such place, or insists on being given it, there is nothing to judge.
        3. A value of a type that the condition does not speak of is met with caution too: it stops a call,
           and never lets one pass.
        4. Otherwise the schema decides.
        """
        value = find(arguments, input_schema, self.segments)
        if isinstance(value, Gap):
            return is_cautious and value is Gap.UNTOLD
        if self.types is not None and not types_of(value) & self.types:
            return is_cautious
        return self.validator.is_valid(value)
