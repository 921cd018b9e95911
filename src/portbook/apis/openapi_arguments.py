"""`Arguments`: the arguments of one imported operation, collected from its parameters and its body."""

from __future__ import annotations

import re
from itertools import chain, count
from typing import Any, Final

__all__ = ["Arguments", "NotSupported"]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class NotSupported(Exception):
    """An operation needs an unsupported feature; the message says which."""


class Arguments:
    """The properties of a tool's input schema, as far as they are known."""

    __slots__ = ("properties", "required")

    def __init__(self) -> None:
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []

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
        return schema
