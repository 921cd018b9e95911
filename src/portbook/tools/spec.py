"""A tool as declared: its name, its contract, its effect, and the function behind it. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from portbook.errors import Refused
from portbook.model import JSONObject
from portbook.tools.operation import HttpOperation

__all__ = ["TOOL_PREFIX", "BadTool", "Effect", "ToolSpec", "is_slug", "require_slug", "slug_of"]

TOOL_PREFIX: Final = "mcp.tool:"

# The envelope contract's tool identifier without its prefix; MCP allows names of at most 128 characters.
_SLUG = re.compile(r"[a-z0-9_.]{1,128}", re.ASCII)


class BadTool(ValueError):
    """A tool that cannot be served; the message says which one, why, and what to do."""


class Effect(StrEnum):
    """What calling a tool does to the world."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool, before its schemas are compiled."""

    name: str
    description: str
    input_schema: JSONObject
    output_schema: JSONObject | bool
    effect: Effect
    function: Callable[[JSONObject], Any] | Callable[[JSONObject], Awaitable[Any]] | None = None
    """Takes arguments that passed the input schema; returns a value for the output schema."""
    operation: HttpOperation | None = None
    """What to ask of an HTTP API instead, where the tool is one."""
    is_async: bool = False
    is_inline: bool = False
    """Quick and pure: runs on the event loop itself, without a deadline."""
    timeout_ms: int | None = None
    """The tool's own deadline; without one, the boundary's."""
    is_effect_declared: bool = True
    """Whether somebody said what its effect is; else it counts as one that writes."""
    refuse: Callable[[JSONObject], Refused | None] | None = field(default=None, compare=False)
    """Takes arguments that passed the input schema; returns why the tool cannot run with them all the same,
    or None where it can. Quick and pure: it is asked before a person is asked to approve the call."""

    @property
    def identifier(self) -> str:
        """Return the canonical identifier of the envelope contract."""
        return TOOL_PREFIX + self.name

    def definition(self) -> JSONObject:
        """Return what the tool is, as far as it can be written down."""
        return {
            "name": self.name,
            "description": self.description,
            "input": self.input_schema,
            "output": self.output_schema,
            "effect": self.effect.value,
            "operation": None if self.operation is None else self.operation.as_data(),
        }


def is_slug(name: str) -> bool:
    """Return whether a tool can have this name."""
    return _SLUG.fullmatch(name) is not None


def require_slug(name: str) -> str:
    """Return `name` if a tool can have it.

    Raises `BadTool` otherwise.
    """
    if not is_slug(name):
        raise BadTool(
            f"tool name {name[:40]!r}: use 1 to 128 of a-z, 0-9, '_' and '.'; "
            "give another with @toolset.tool(name=...)"
        )
    return name


def slug_of(identifier: str) -> str:
    """Return a tool's name from either way of writing it, with the prefix or without."""
    return identifier.removeprefix(TOOL_PREFIX)
