"""What a connection has agreed on, and which message may come when. States as a table. Pure: no I/O."""

from __future__ import annotations

from enum import Enum
from typing import Final

from portbook.protocol.revisions import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, REVISIONS, Revision

__all__ = ["Session", "State", "negotiate"]


class State(Enum):
    """How far the handshake has come."""

    NEW = "new"
    AGREED = "agreed"
    READY = "ready"


# What a method does to the state; a method that is not here leaves it alone.
_STEPS: Final = {
    (State.NEW, "initialize"): State.AGREED,
    (State.AGREED, "notifications/initialized"): State.READY,
}


def negotiate(requested: str) -> Revision:
    """Return the revision to speak: the one asked for where it has a handshake, else the newest that has."""
    return REVISIONS[requested] if requested in HANDSHAKE_REVISIONS else NEWEST_HANDSHAKE


class Session:
    """One connection's handshake."""

    __slots__ = ("revision", "state")

    def __init__(self) -> None:
        self.state = State.NEW
        self.revision: Revision | None = None

    def agree(self, revision: Revision) -> None:
        """Note what `initialize` settled."""
        self.revision = revision
        self.step("initialize")

    def step(self, method: str) -> None:
        """Note that a message with this method was accepted."""
        self.state = _STEPS.get((self.state, method), self.state)
