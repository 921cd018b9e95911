"""`ServerDefinitions`: all that is pinned of one MCP server, as approved or as observed. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.pins.difference import PinnedKind, parts_of

__all__ = ["SERVER", "ServerDefinitions"]

# The name of the server's own definition, which has no other.
SERVER: Final = ""


@dataclass(frozen=True, slots=True)
class ServerDefinitions:
    """Tools and prompts by the server's own names, without the names in them; and its instructions."""

    tools: Mapping[str, JSONObject] = field(default_factory=dict[str, JSONObject])
    prompts: Mapping[str, JSONObject] = field(default_factory=dict[str, JSONObject])
    instructions: str | None = None

    @classmethod
    def observed(
        cls, tools: Iterable[JSONObject], prompts: Iterable[JSONObject] = (), instructions: str | None = None
    ) -> ServerDefinitions:
        """Return what a server sent: its lists, which are known to match MCP's schema."""
        return cls(
            {cast("str", each["name"]): parts_of(each) for each in tools},
            {cast("str", each["name"]): parts_of(each) for each in prompts},
            instructions,
        )

    @classmethod
    def of_data(cls, data: Mapping[str, JSON]) -> ServerDefinitions:
        """Return the definitions that `as_data` gave."""
        return cls(
            cast("dict[str, JSONObject]", data["tools"]),
            cast("dict[str, JSONObject]", data["prompts"]),
            cast("str | None", data["instructions"]),
        )

    def as_data(self) -> JSONObject:
        """Return the definitions as JSON."""
        return {"tools": {**self.tools}, "prompts": {**self.prompts}, "instructions": self.instructions}

    def of(self, kind: PinnedKind, name: str) -> JSONObject | None:
        """Return the parts of one definition, or None."""
        if kind == "server":
            return None if self.instructions is None else {"instructions": self.instructions}
        return (self.tools if kind == "tool" else self.prompts).get(name)

    def names(self) -> Iterator[tuple[PinnedKind, str]]:
        """Yield the kind and name of every definition."""
        if self.instructions is not None:
            yield "server", SERVER
        for name in self.tools:
            yield "tool", name
        for name in self.prompts:
            yield "prompt", name

    def merged(self, kind: PinnedKind, name: str, parts: JSONObject | None) -> ServerDefinitions:
        """Return these definitions with one of them replaced, or without it where it is None."""
        if kind == "server":
            words = None if parts is None else cast("str", parts["instructions"])
            return ServerDefinitions(self.tools, self.prompts, words)
        tools, prompts = dict(self.tools), dict(self.prompts)
        changed = tools if kind == "tool" else prompts
        if parts is None:
            changed.pop(name, None)
        else:
            changed[name] = parts
        return ServerDefinitions(tools, prompts, self.instructions)
