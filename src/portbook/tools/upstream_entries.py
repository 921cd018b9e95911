"""Entries of MCP servers: where one comes from, and one that waits for approval. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from portbook.errors import Reason, Refused
from portbook.model import JSONObject, Kind
from portbook.text.named_tuple import NamedTuple

__all__ = ["ListedFile", "UpstreamEntry", "WithheldEntry"]


class ListedFile(Protocol):
    """A file of a skill, as the skill's entry lists it."""

    def problem_in(self, contents: list[JSONObject]) -> str | None:
        """Return how what was read differs from the entry, None where it does not."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamEntry:
    """A tool, resource or prompt of an MCP server, as that server names and defines it."""

    server: str
    """The alias of the server in the settings."""
    name: str
    """The server's own name of it: of a resource its URI or template."""
    definition: JSONObject
    """The whole definition as the server sent it."""
    is_confined: bool | None = None
    """Whether the server runs in a sandbox; None where Portbook does not start it."""
    file: ListedFile | None = None
    """What the entry of a skill says of it, where it is a file of one."""


# `WithheldEntry`: an entry of an MCP server that is not served until a person approves it.


class WithheldEntry(NamedTuple):
    """An entry that is not listed, and whose calls are refused."""

    kind: Kind
    name: str
    """Its canonical name, a prompt's name."""
    other_names: frozenset[str]
    """Further names by which MCP clients would call a tool."""
    told: JSONObject
    """What a caller is told: nothing that the server wrote."""
    recorded: JSONObject
    """What the record has: the difference from what was approved."""
    reason: Reason = Reason.TOOL_WITHHELD

    def refusal(self) -> Refused:
        """Return the refusal of a call."""
        refused = Refused(self.reason, details=self.told)
        refused.difference = self.recorded
        return refused
