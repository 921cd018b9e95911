"""`ServerDefinitions`: all that is pinned of one MCP server, as approved or as observed. Pure: no I/O.

Tools and prompts are named by their server. The server itself has one definition, its instructions. Resources
are not pinned: they are content, which is read anew each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast

from portbook.canonical import canonical_bytes, fingerprint
from portbook.model import JSON, JSONObject

__all__ = [
    "FORMULA",
    "SERVER",
    "PinnedKind",
    "ServerDefinitions",
    "digest_of_part",
    "is_same_part",
    "parts_of",
]

PinnedKind: TypeAlias = Literal["tool", "prompt", "server"]

# The parts of a definition, and their digests.
#
# A part is a member of the definition as its server sent it. Parts are digested apart, so that a change of
# one does not hide behind another, and a record can name both sides of it without repeating them.

# Names the form of the digests. A new form needs a new number: digests of two forms never match.
FORMULA: Final = 1

# It is the key of its definition; a different name is a different definition.
_NAME: Final = "name"

# Keys of `_meta` that MCP reserves: they are about one message, and are not passed on.
_RESERVED: Final = "io.modelcontextprotocol/"
_META: Final = "_meta"


def parts_of(definition: Mapping[str, JSON]) -> JSONObject:
    """Return the parts of a definition, ordered by name; a part that is null counts as missing."""
    parts = {name: _part(name, value) for name, value in sorted(definition.items()) if name != _NAME}
    return {name: value for name, value in parts.items() if value is not None}


def digest_of_part(part: str, value: JSON) -> str | None:
    """Return the digest of one part, or None where it is missing."""
    return None if value is None else fingerprint([FORMULA, part, value])


def is_same_part(one: JSON, other: JSON) -> bool:
    """Return whether two parts are written alike, apart from the order of members."""
    return canonical_bytes(one) == canonical_bytes(other)


def _part(name: str, value: JSON) -> JSON:
    if name != _META or not isinstance(value, dict):
        return value
    kept = {key: each for key, each in value.items() if not key.startswith(_RESERVED)}
    return kept or None


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
