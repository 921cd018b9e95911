"""`Arguments`: the arguments of one imported operation, collected from its parameters and its body.

`ArgumentRules` is what the operator lets callers choose.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final

__all__ = ["ANY_ARGUMENT", "ArgumentRules", "Arguments", "NotSupported"]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class NotSupported(Exception):
    """An operation needs an unsupported feature; the message says which."""


def _any_header(name: str) -> bool:
    return bool(name)


@dataclass(frozen=True, slots=True)
class ArgumentRules:
    """What may become an argument of an imported operation."""

    is_argument_header: Callable[[str], bool] = _any_header
    """Returns whether an argument may set the header."""
    takes_cookies: bool = True
    """Whether arguments may set cookies; not where the operator sets the Cookie header."""
    credentials: frozenset[tuple[str, str]] = frozenset()
    """Places and names that credentials of the operator have; headers in lower case."""
    takes_paths: bool = False
    """Whether a file may be given by its path in the operator's folder."""


ANY_ARGUMENT: Final = ArgumentRules()


class Arguments:
    """The properties of a tool's input schema, as far as they are known."""

    __slots__ = ("fixed_headers", "fixed_query", "names", "properties", "required", "rules")

    def __init__(self, rules: ArgumentRules) -> None:
        self.rules = rules
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.names: Any = True
        """The schema of the names of further arguments."""
        # What each request has, whatever the arguments: nobody has to ask for the only value there is.
        self.fixed_headers: dict[str, str] = {}
        self.fixed_query: dict[str, str] = {}

    def add(self, wanted: str, place: str, schema: Any, *, is_required: bool) -> str:
        """Add an argument and return its name: the one wanted, with its place, or also with a number."""
        plain = _UNSAFE.sub("_", wanted).strip("_") or "argument"
        placed = f"{plain}_{place}"
        names = chain((plain, placed), (f"{placed}_{number}" for number in count(2)))
        name = next(name for name in names if name not in self.properties)
        self.properties[name] = schema
        if is_required:
            self.required.append(name)
        return name

    def as_schema(self, *, is_open: bool) -> dict[str, Any]:
        """Return the schema of all arguments; an open one allows further ones."""
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = self.required
        if not is_open:
            schema["additionalProperties"] = False
        elif self.names is not True:
            schema["propertyNames"] = self.names
        return schema
