"""What client and server negotiate: the revision of each message, and sessions. Pure: no I/O.

- `revision_of`: the revision of a message: from its `_meta`, its header, or the handshake.
- `Session`: the result of a connection's handshake, its log level and its subscriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.protocol.mirrored_headers import SESSION, VERSION, mismatch, refuse_headers
from portbook.protocol.revisions_and_methods import (
    HANDSHAKE_REVISIONS,
    NEWEST_HANDSHAKE,
    REVISIONS,
    STATELESS_REVISIONS,
    Revision,
)
from portbook.text.named_tuple import NamedTuple

__all__ = ["LEVELS", "META_REVISION", "Session", "revision_of"]

META_REVISION: Final = "io.modelcontextprotocol/protocolVersion"

_NEWEST: Final = REVISIONS[STATELESS_REVISIONS[-1]]


def revision_of(
    message: JSONObject, session: Session, headers: Mapping[str, str] | None
) -> tuple[Revision, Refused | None]:
    """Return the revision of `message`; where it has none, the one to answer in and the refusal.

    1. The request names one: it must be a revision without a handshake, and match the header.
    2. The header names one without a handshake: then the request should have named it too, and no session.
    3. `initialize` names the one it prefers; it is validated by the one that will be agreed on.
    4. The connection has agreed on one. A header that names a different one with a handshake changes nothing:
       published clients send the newest that they know.
    5. `ping` is allowed before that.
    """
    meta = meta_of(message)
    header = headers.get(VERSION) if headers is not None else None
    if META_REVISION in meta:
        return _named(message, meta[META_REVISION], headers, header)
    if header is not None and header.strip() in STATELESS_REVISIONS:
        is_in_session = headers is not None and SESSION in headers
        refused = mismatch(VERSION, "must be the negotiated revision") if is_in_session else None
        return REVISIONS[header.strip()], refused  # validation will report what is missing
    if header is not None and header not in REVISIONS:
        agreed = session.revision
        spoken = tuple(REVISIONS) if agreed is None else (agreed.name,)
        return agreed or NEWEST_HANDSHAKE, _unsupported(header, spoken)
    if message.get("method") == "initialize" and session.revision is None:
        params = message.get("params")
        wanted = params.get("protocolVersion") if isinstance(params, dict) else None
        return _negotiated(wanted if isinstance(wanted, str) else ""), None
    if session.revision is not None:
        return session.revision, None
    if message.get("method") == "ping" or "id" not in message:
        return NEWEST_HANDSHAKE, None
    finding = Finding("/params/_meta", f"send initialize first, or set {META_REVISION}", "required", "")
    return NEWEST_HANDSHAKE, Refused(Reason.BAD_PARAMS, (finding,))


def meta_of(message: JSONObject) -> JSONObject:
    """Return the `_meta` of a message's params; empty where it is missing or not an object."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def _named(
    message: JSONObject, named: object, headers: Mapping[str, str] | None, header: str | None
) -> tuple[Revision, Refused | None]:
    if not isinstance(named, str):
        pointer = f"/params/_meta/{META_REVISION.replace('/', '~1')}"
        return _NEWEST, Refused(Reason.BAD_PARAMS, (Finding(pointer, "expected string", "type", ""),))
    if header is not None and header.strip() != named:
        return _NEWEST, refuse_headers(cast("Mapping[str, str]", headers), message, named)
    if named in STATELESS_REVISIONS:
        return REVISIONS[named], None
    return _NEWEST, _unsupported(named)


def _unsupported(named: str, spoken: tuple[str, ...] = STATELESS_REVISIONS) -> Refused:
    details = {"requested": named[:64], "supported": list(spoken)}
    return Refused(Reason.UNSUPPORTED_REVISION, details=details)


def _negotiated(requested: str) -> Revision:
    """Return the requested revision where it has a handshake, otherwise the newest that has one."""
    return REVISIONS[requested] if requested in HANDSHAKE_REVISIONS else NEWEST_HANDSHAKE


# Sessions.

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
