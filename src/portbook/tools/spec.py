"""`ToolSpec`: a tool as declared, with its name, schemas, effect and function. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal

from portbook.errors import Refused
from portbook.model import JSON, JSONObject, Kind
from portbook.text.slotted import slotted
from portbook.tools.tool_names import (
    identifier_of,
    is_declarable,
    is_slug,
)

if TYPE_CHECKING:
    from portbook.tools.http_operation import HttpOperation
    from portbook.tools.upstream_entries import UpstreamEntry

__all__ = [
    "SKILL_SCHEME",
    "BadTool",
    "Complete",
    "Effect",
    "NotFound",
    "SecretUse",
    "Switch",
    "TaskUse",
    "ToolError",
    "ToolSpec",
    "require_name",
    "require_slug",
]

SKILL_SCHEME: Final = "skill://"

# Suggestions for one argument: a list, or a function that returns one from the text typed so far.
Complete = Sequence[str] | Callable[[str], Sequence[str]]


class BadTool(ValueError):
    """A tool that cannot be served; the message names the tool, the reason and the fix."""


class ToolError(Exception):
    """Raised by a tool to tell the caller why it failed: an error that the author means, not a crash.

    A model reads the `message`; programs find the `code`, the `data` (any JSON value) and whether a retry may
    help (`retryable`). Message, code and data are redacted.

    Of all other exceptions, the caller gets the `code` where that is a string without spaces, and no text.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        data: JSON = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.retryable = retryable


class NotFound(ToolError):
    """Raised by a resource's function where no resource exists at the requested address.

    The caller gets MCP's error for it, with the address. In a tool it is treated as a `ToolError`.
    """


class Effect(StrEnum):
    """The effect of calling a tool."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


# What happens to secrets in a result: they are redacted; the call fails, because the result must not be
# altered; or they are given.
SecretUse = Literal["redact", "refuse", "give"]

# Whether a call runs as a task: never, where the client supports tasks, or always.
TaskUse = Literal["never", "optional", "required"]


class Switch:
    """Whether an entry is currently served. Read on every call, set by the toolset's author."""

    __slots__ = ("is_on", "is_replaced")

    def __init__(self) -> None:
        self.is_on = True
        self.is_replaced = False
        """Whether it is off because a new definition of the same entry is served."""


@slotted
class ToolSpec:
    """One tool, resource or prompt, before its schemas are compiled."""

    name: str
    """A tool's canonical name, a prompt's name, a resource's URI."""
    description: str
    input_schema: JSONObject
    output_schema: JSONObject | bool
    effect: Effect
    function: Callable[[JSONObject], Any] | Callable[[JSONObject], Awaitable[Any]] | None = None
    """Takes arguments that passed the input schema; returns a value for the output schema."""
    operation: HttpOperation | None = None
    """The HTTP request to make instead of calling a function, where the tool is an API operation."""
    upstream: UpstreamEntry | None = None
    """What to request of an MCP server instead of calling a function, where a server offers it."""
    is_async: bool = False
    is_inline: bool = False
    """Quick and pure: runs on the event loop itself, without a deadline."""
    timeout_ms: int | None = None
    """The tool's own deadline; without one, the boundary's."""
    is_effect_declared: bool = True
    """Whether the author declared the effect; an undeclared effect counts as a write."""
    refuse: Callable[[JSONObject], Refused | None] | None = field(default=None, compare=False)
    """Takes arguments that passed the input schema; returns why the tool still cannot run with them, or None.
    Quick and pure: it runs before an approval is requested."""
    kind: Kind = "tool"
    completes: Literal["prompt", "resource"] | None = None
    """The kind whose arguments a completion completes."""
    shown: JSONObject = field(default_factory=dict[str, JSON])
    """Listing metadata beside name and schemas: a title, icons, a MIME type."""
    hints: JSONObject = field(default_factory=dict[str, JSON])
    """A tool's MCP annotations, without those that its effect determines."""
    gives_content: bool = False
    """Whether its result is a list of MCP content, not a value."""
    task: TaskUse = "never"
    detaches: bool = True
    """Whether a call that may be a task is one from its start; otherwise from `context.detach()` on."""
    switch: Switch | None = None
    author: Callable[..., Any] | None = field(default=None, compare=False)
    """The author's own function, whose place messages name."""
    skill: JSONObject | None = None
    """The entry of the Agent Skill, where this resource is its `SKILL.md`."""
    cache_ms: int = 0
    """How long clients may cache the resource."""
    declared_name: str | None = None
    """The author's own name of a tool, where its canonical name is derived from that."""
    secrets: SecretUse = "redact"
    are_schemas_checked: bool = field(default=False, compare=False)
    """Whether both schemas are known to compile: they are then compiled on the first call, not at start. They
    have no keyword of ours."""
    is_result_unchecked: bool = False
    """Whether its results are given although its document's schema for them cannot be used; its records say
    so."""
    is_output_listed: bool = True
    """Whether lists show the output schema; a large one would make a list that no client can use."""
    outputs_by_status: tuple[tuple[str, JSONObject | bool], ...] = ()
    """The output schemas of single HTTP statuses, or of all in a range (`2XX`), where they differ. The output
    schema allows what any of them does."""
    tags: tuple[str, ...] = ()
    """The tags of a tool or an API operation, by which people and policies group tools."""
    is_deprecated: bool = False
    """Whether the document of an API operation advises against it."""
    takes_context: bool = True
    """Whether its function may ask for the `Context` of its call."""

    @property
    def policy_kind(self) -> Literal["tool", "resource", "prompt"]:
        """Return the kind that policy rules match: for a completion, the kind that it completes."""
        if self.kind == "completion":
            return self.completes or "prompt"
        return self.kind

    @property
    def listed_output(self) -> JSONObject | bool:
        """Return the output schema as lists show it: true, which allows anything, in place of a large one."""
        return self.output_schema if self.is_output_listed else True

    @property
    def declared(self) -> str:
        """Return the name that its author gave it."""
        return self.declared_name or self.name

    @property
    def is_on(self) -> bool:
        """Return whether it is currently served."""
        return self.switch is None or self.switch.is_on

    @property
    def identifier(self) -> str:
        """Return the canonical identifier of the envelope schema."""
        return identifier_of(self.kind, self.name)

    def definition(self) -> JSONObject:
        """Return the tool's definition as JSON: everything but its code."""
        return {
            "name": self.name,
            "description": self.description,
            "input": self.input_schema,
            "output": self.output_schema,
            **({"outputs_by_status": dict(self.outputs_by_status)} if self.outputs_by_status else {}),
            "effect": self.effect.value,
            "operation": None if self.operation is None else self.operation.as_data(),
            **({} if self.upstream is None else {"upstream": self.upstream.definition}),
        }


def require_slug(name: str) -> str:
    """Return `name` if it is a valid canonical name.

    Raises `BadTool` otherwise.
    """
    if not is_slug(name):
        raise BadTool(f"canonical tool name {name[:40]!r}: use 1 to 128 of a-z, 0-9, '_' and '.'")
    return name


def require_name(name: str) -> str:
    """Return `name` if an author may declare it.

    Raises `BadTool` otherwise.
    """
    if not is_declarable(name):
        raise BadTool(
            f"tool name {name[:40]!r}: use 1 to 128 of A-Z, a-z, 0-9, '_', '-' and '.'; "
            "set a different one with @toolset.tool(name=...)"
        )
    return name
