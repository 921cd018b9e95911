"""A rule's condition on one argument: a JSON Pointer, and a JSON Schema for its value. Pure: no I/O."""

from __future__ import annotations

from portbook.model import JSONObject
from portbook.policy.arguments import Gap, find
from portbook.policy.types import types_of
from portbook.schema.engine import Validator
from portbook.text.named_tuple import NamedTuple

__all__ = ["Condition"]


class Condition(NamedTuple):
    """What the value at one place in the arguments must be."""

    pointer: str
    segments: tuple[str, ...]
    schema: JSONObject | bool
    validator: Validator
    types: frozenset[str] | None
    """The JSON types that the schema constrains; None for all of them."""

    def holds(self, arguments: JSONObject, input_schema: JSONObject, *, is_cautious: bool) -> bool:
        """Return whether the condition is met; `is_cautious` for rules that stop calls.

        1. Without a value, the default in the tool's schema is what the tool will see.
        2. If the tool may fill in a default that its schema does not name, a cautious condition is met. If
           the tool has no such place, or requires a value there, the condition is not met.
        3. A value of a type that the condition does not constrain meets a cautious condition: it stops a
           call, and never allows one.
        4. Otherwise the schema decides.
        """
        value = find(arguments, input_schema, self.segments)
        if isinstance(value, Gap):
            return is_cautious and value is Gap.UNTOLD
        if self.types is not None and not types_of(value) & self.types:
            return is_cautious
        # A string is JSON in any case; a number of a default may be none.
        return self.validator.allows(value) if isinstance(value, str) else self.validator.is_valid(value)
