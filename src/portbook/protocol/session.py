"""`Session`: the result of a connection's handshake, its log level and its subscriptions. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.protocol.log_levels import DEFAULT_LEVEL
from portbook.protocol.revisions import REVISIONS, Revision

__all__ = ["Session"]

# The client capabilities that are used, and how much of each is kept.
_CAPABILITIES: Final = ("elicitation", "sampling", "roots", "tasks", "extensions", "experimental")
_MAX_TRAITS: Final = 8
_MAX_TRAIT: Final = 64


class Session:
    """The state of one connection: its handshake, log level and subscriptions."""

    __slots__ = ("capabilities", "changes", "level", "revision", "watched")

    def __init__(self) -> None:
        self.revision: Revision | None = None
        self.capabilities: JSONObject = {}
        """The client's declared capabilities: their names, and the names of their traits."""
        self.level = DEFAULT_LEVEL
        """The least severe level of log messages that the client wants."""
        self.watched: set[str] = set()
        """The resources that the client subscribed to."""
        self.changes = 0
        """Counts changes, so that the session store can tell whether to write."""

    def agree(self, revision: Revision, capabilities: JSONObject | None = None) -> None:
        """Set the result of `initialize`."""
        self.revision = revision
        self.capabilities = _outlined(capabilities or {})
        self.changes += 1

    def hear_from(self, level: str) -> None:
        """Set the least severe level of log messages that the client wants."""
        self.level = level
        self.changes += 1

    def as_data(self) -> JSONObject:
        """Return the session as JSON, to store it."""
        return {
            "revision": None if self.revision is None else self.revision.name,
            "capabilities": self.capabilities,
            "level": self.level,
            "watched": cast("JSON", sorted(self.watched)),
        }

    @classmethod
    def from_data(cls, data: JSONObject) -> Session:
        """Return a stored session."""
        session = cls()
        session.agree(REVISIONS[cast("str", data["revision"])], cast("JSONObject", data["capabilities"]))
        session.adopt(data)
        return session

    def adopt(self, data: JSONObject) -> None:
        """Set log level and subscriptions from a stored session, whichever process stored it."""
        self.level = cast("str", data["level"])
        self.watched = set(cast("list[str]", data["watched"]))


def _outlined(capabilities: JSONObject) -> JSONObject:
    """Return the used parts of a client's capabilities, because a client may declare a mebibyte of them."""
    return {
        name: {trait: {} for trait in list(traits)[:_MAX_TRAITS] if len(trait) <= _MAX_TRAIT}
        for name in _CAPABILITIES
        if isinstance(traits := capabilities.get(name), dict)
    }
