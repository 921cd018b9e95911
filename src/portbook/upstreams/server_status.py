"""`ServerStatus`: what operators see of a server. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from portbook.model import JSONObject

__all__ = ["ServerState", "ServerStatus"]

ServerState = Literal["stopped", "starting", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server at one moment."""

    alias: str
    transport: str
    state: ServerState
    revision: str | None
    tools: int
    withheld: int
    last_error: str | None
    restarts: int

    def as_data(self) -> JSONObject:
        """Return it as JSON."""
        return {
            "name": self.alias,
            "transport": self.transport,
            "state": self.state,
            "revision": self.revision,
            "tools": self.tools,
            "withheld": self.withheld,
            "last_error": self.last_error,
            "restarts": self.restarts,
        }
