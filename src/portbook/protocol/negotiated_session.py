"""`Session`: the result of a connection's handshake, its log level and its subscriptions. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import REVISIONS, Revision
from portbook.text.named_tuple import NamedTuple

__all__ = ["DEFAULT_LEVEL", "LEVELS", "Session", "SessionWishes"]

# The log levels of MCP, and the one that holds until a client sets one.

# The log levels of MCP, from the least severe.
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# The level of a connection that has not set one.
DEFAULT_LEVEL: Final = "info"

# The client capabilities that are used, and how much of each is kept.
_CAPABILITIES: Final = ("elicitation", "sampling", "roots", "tasks", "extensions", "experimental")
_MAX_TRAITS: Final = 8
_MAX_TRAIT: Final = 64

# The most characters of resources that wait for a store which cannot be written.
_MAX_WAITING: Final = 131_072


class SessionWishes(NamedTuple):
    """What a client has asked for since its session was stored last."""

    level: str | None
    watched: dict[str, bool]
    """The resources that it subscribed to (True) or unsubscribed from."""

    def applied_to(self, state: JSONObject) -> JSONObject:
        """Return a stored session with these changes; what others have stored there stays."""
        watched = set(cast("list[str]", state["watched"]))
        for uri, is_watched in self.watched.items():
            (watched.add if is_watched else watched.discard)(uri)
        level = state["level"] if self.level is None else self.level
        return {**state, "level": level, "watched": cast("JSON", sorted(watched))}


class Session:
    """The state of one connection: its handshake, log level and subscriptions."""

    __slots__ = ("capabilities", "changes", "is_stored", "level", "revision", "watched", "wishes")

    def __init__(self) -> None:
        self.revision: Revision | None = None
        self.capabilities: JSONObject = {}
        """The client's declared capabilities: their names, and the names of their traits."""
        self.level = DEFAULT_LEVEL
        """The least severe level of log messages that the client wants."""
        self.watched: set[str] = set()
        """The resources that the client subscribed to."""
        self.is_stored = False
        """Whether a store is told of what the client wishes."""
        self.wishes = SessionWishes(None, {})
        """What the store does not know yet."""
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
        self.wishes = self.wishes._replace(level=level)
        self.changes += 1

    def watch(self, uri: str, *, is_watched: bool) -> None:
        """Subscribe to a resource, or unsubscribe from it."""
        (self.watched.add if is_watched else self.watched.discard)(uri)
        if self.is_stored:
            self.wishes.watched[uri] = is_watched
        self.changes += 1

    def take_wishes(self) -> SessionWishes:
        """Return what the store does not know yet, and begin anew."""
        wishes, self.wishes = self.wishes, SessionWishes(None, {})
        return wishes

    def put_back(self, wishes: SessionWishes) -> None:
        """Take back what could not be stored, under what was asked for since."""
        level = wishes.level if self.wishes.level is None else self.wishes.level
        watched = wishes.watched | self.wishes.watched
        while sum(map(len, watched)) > _MAX_WAITING:
            del watched[next(iter(watched))]
        self.wishes = SessionWishes(level, watched)

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
        """Set log level and subscriptions from a stored session, whichever process stored it.

        What was asked for here and is not stored yet holds all the same.
        """
        data = self.wishes.applied_to(data)
        self.level = cast("str", data["level"])
        self.watched = set(cast("list[str]", data["watched"]))


def _outlined(capabilities: JSONObject) -> JSONObject:
    """Return the used parts of a client's capabilities, because a client may declare a mebibyte of them."""
    return {
        name: {trait: {} for trait in list(traits)[:_MAX_TRAITS] if len(trait) <= _MAX_TRAIT}
        for name in _CAPABILITIES
        if isinstance(traits := capabilities.get(name), dict)
    }
