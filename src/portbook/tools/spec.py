"""A tool as declared: its name, its contract, its effect, and the function behind it. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

from portbook.errors import Refused
from portbook.model import JSON, JSONObject, Kind
from portbook.tools.operation import HttpOperation

__all__ = [
    "SKILL_SCHEME",
    "TOOL_PREFIX",
    "BadTool",
    "Complete",
    "Effect",
    "NotFound",
    "Switch",
    "TaskUse",
    "ToolError",
    "ToolSpec",
    "identifier_of",
    "is_slug",
    "named_by",
    "require_slug",
    "slug_of",
]

TOOL_PREFIX: Final = "mcp.tool:"
SKILL_SCHEME: Final = "skill://"

# Suggestions for one argument: a list to choose from, or a function of what was typed so far.
Complete = Sequence[str] | Callable[[str], Sequence[str]]

# The envelope contract's tool identifier without its prefix; MCP allows names of at most 128 characters.
_SLUG = re.compile(r"[a-z0-9_.]{1,128}", re.ASCII)


class BadTool(ValueError):
    """A tool that cannot be served; the message says which one, why, and what to do."""


class ToolError(Exception):
    """What a tool raises to tell the model why it failed: its words reach the caller, redacted.

    Of any other exception the caller learns only that there was one.
    """


class NotFound(ToolError):
    """What the function of a resource raises where there is nothing at the address that was asked for.

    The caller gets the error that MCP has for it, with the address. In a tool it is a `ToolError` like any.
    """


class Effect(StrEnum):
    """What calling a tool does to the world."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


# Whether a call may go on as a task that its caller looks after: never, where the caller can, or only so.
TaskUse = Literal["never", "optional", "required"]


class Switch:
    """Whether something is served at the moment. Read on every call, turned by its author."""

    __slots__ = ("is_on",)

    def __init__(self) -> None:
        self.is_on = True


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool, resource or prompt, before its schemas are compiled."""

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
    kind: Kind = "tool"
    completes: Literal["prompt", "resource"] | None = None
    """What a completion is for."""
    shown: JSONObject = field(default_factory=dict[str, JSON])
    """What listings say of it beside its name and contract: a title, icons, a MIME type."""
    hints: JSONObject = field(default_factory=dict[str, JSON])
    """What MCP's annotations say of a tool beside its effect."""
    gives_content: bool = False
    """Its result is a list of MCP content, not a value."""
    task: TaskUse = "never"
    detaches: bool = True
    """Whether a call that may be a task is one from its start; otherwise the tool says when."""
    switch: Switch | None = None
    skill: JSONObject | None = None
    """The entry of the Agent Skill that this resource is the `SKILL.md` of."""
    cache_ms: int = 0
    """How long clients may keep what a resource holds, without asking again."""

    @property
    def policy_kind(self) -> Literal["tool", "resource", "prompt"]:
        """Return what rules know it as: a completion is for a prompt or a resource, and judged as such."""
        if self.kind == "completion":
            return self.completes or "prompt"
        return self.kind

    @property
    def is_on(self) -> bool:
        """Return whether it is served at the moment."""
        return self.switch is None or self.switch.is_on

    @property
    def identifier(self) -> str:
        """Return the canonical identifier of the envelope contract."""
        return identifier_of(self.kind, self.name)

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


def identifier_of(kind: Kind, name: str) -> str:
    """Return what records call something: its kind and its name."""
    return f"mcp.{kind}:{name}"


def named_by(identifier: str) -> tuple[Kind, str]:
    """Return the kind and the name that an identifier is made of; without a prefix, it is a tool's name."""
    for kind in ("tool", "resource", "prompt", "completion"):
        prefix = f"mcp.{kind}:"
        if identifier.startswith(prefix):
            return kind, identifier.removeprefix(prefix)
    return "tool", identifier


def slug_of(identifier: str) -> str:
    """Return a tool's name from either way of writing it, with the prefix or without."""
    return identifier.removeprefix(TOOL_PREFIX)
