"""`UpstreamEntry`: where an entry comes from that an MCP server behind Portbook offers. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from portbook.model import JSONObject

__all__ = ["ListedFile", "UpstreamEntry"]


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
