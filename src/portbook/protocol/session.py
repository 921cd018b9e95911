"""What a connection has agreed on, and what it wants to hear. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, REVISIONS, Revision

__all__ = ["LEVELS", "Session", "negotiate"]

# How grave a message to a log is, from the least on.
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# What a connection hears that has not said what it wants.
_DEFAULT_LEVEL: Final = "info"

# What one connection can watch, and how long its addresses are together; more would be a way to fill memory.
_MAX_WATCHED: Final = 1024
_MAX_WATCHED_CHARACTERS: Final = 65_536

# The capabilities of a client that anybody asks about, and how much is kept of what they say in turn.
_CAPABILITIES: Final = ("elicitation", "sampling", "roots", "tasks", "extensions", "experimental")
_MAX_TRAITS: Final = 8
_MAX_TRAIT: Final = 64


def negotiate(requested: str) -> Revision:
    """Return the revision to speak: the one asked for where it has a handshake, else the newest that has."""
    return REVISIONS[requested] if requested in HANDSHAKE_REVISIONS else NEWEST_HANDSHAKE


class Session:
    """One connection's handshake: none yet, or what it settled, and what the client asked for since."""

    __slots__ = ("capabilities", "changes", "level", "revision", "watched")

    def __init__(self) -> None:
        self.revision: Revision | None = None
        self.capabilities: JSONObject = {}
        """What the client said that it can do: names, and names of what belongs to them."""
        self.level = _DEFAULT_LEVEL
        """The least grave of log messages that it wants."""
        self.watched: set[str] = set()
        """The resources that it wants to hear of."""
        self.changes = 0
        """Goes up with every change: whoever writes sessions down sees by it that there is something new."""

    def agree(self, revision: Revision, capabilities: JSONObject | None = None) -> None:
        """Note what `initialize` settled."""
        self.revision = revision
        self.capabilities = _outlined(capabilities or {})
        self.changes += 1

    def hear_from(self, level: str) -> None:
        """Note the least grave of log messages that the client wants."""
        self.level = level
        self.changes += 1

    def unwatch(self, uri: str) -> None:
        """Note that the client no longer wants to hear of a resource."""
        self.watched.discard(uri)
        self.changes += 1

    def watch(self, uri: str) -> bool:
        """Note that the client wants to hear of a resource; return whether there was room for it."""
        if uri in self.watched:
            return True
        if len(self.watched) >= _MAX_WATCHED or sum(map(len, self.watched)) > _MAX_WATCHED_CHARACTERS:
            return False
        self.watched.add(uri)
        self.changes += 1
        return True

    def as_data(self) -> JSONObject:
        """Return the session as it can be written down."""
        return {
            "revision": None if self.revision is None else self.revision.name,
            "capabilities": self.capabilities,
            "level": self.level,
            "watched": cast("JSON", sorted(self.watched)),
        }

    @classmethod
    def from_data(cls, data: JSONObject) -> Session:
        """Return the session that was written down."""
        session = cls()
        session.agree(REVISIONS[cast("str", data["revision"])], cast("JSONObject", data["capabilities"]))
        session.adopt(data)
        return session

    def adopt(self, data: JSONObject) -> None:
        """Take over what was written down of what the client wants to hear, by whoever did."""
        self.level = cast("str", data["level"])
        self.watched = set(cast("list[str]", data["watched"]))


def _outlined(capabilities: JSONObject) -> JSONObject:
    """Return what is worth keeping of a client's capabilities: a client may declare a mebibyte of them."""
    return {
        name: {trait: {} for trait in list(traits)[:_MAX_TRAITS] if len(trait) <= _MAX_TRAIT}
        for name in _CAPABILITIES
        if isinstance(traits := capabilities.get(name), dict)
    }
