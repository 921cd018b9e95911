"""Callers and their keys: who has which, how a new one is made, how they are created and revoked.

- `Callers`: which caller a key belongs to. Keys are hashed at rest and compared in constant time.
- `Keys`: the digests of the keys in the store; operators create and revoke keys while servers run.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from portbook.clock import Clock
from portbook.errors import Reason, Refused
from portbook.globs import problem_of
from portbook.model import Caller
from portbook.stores.connection_clock_and_errors import Connection
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import is_same_digest, sha256

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = [
    "ANONYMOUS",
    "OPERATOR",
    "AllowedKey",
    "BadKeyRequest",
    "Callers",
    "KeptKey",
    "Keys",
    "digest_of_key",
]

ANONYMOUS = Caller("anonymous")
OPERATOR = Caller("operator", ())

# Only over HTTP: on the command line, write access to the store is enough.
_OPERATORS_KEY = (
    "The operator's key is needed, as a bearer token: what PORTBOOK_OPERATOR_KEY was when the server started."
)
_NO_OPERATORS_KEY = (
    "This server has no operator key. Set PORTBOOK_OPERATOR_KEY and start it again, "
    "or use `portbook approvals`."
)


class AllowedKey(NamedTuple):
    """A key that may call tools: the name of its caller, and its sha256 in hexadecimal."""

    name: str
    sha256: str
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that it may call."""


# Identifies a key to people, and to scanners for leaked secrets.
_PREFIX: Final = "pbk_"
_SECRET_BYTES: Final = 32


def new_key(draw: Callable[[int], bytes]) -> str:
    """Return the text of a new key; `draw` returns random bytes."""
    return _PREFIX + urlsafe_b64encode(draw(_SECRET_BYTES)).decode().rstrip("=")


def digest_of_key(key: str) -> str:
    """Return the sha256 of a key, in hexadecimal: the only form in which keys are stored."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Callers:
    """Finds the caller of a presented key."""

    __slots__ = ("_allowed", "_operator", "_required", "_stored", "without_key")

    def __init__(
        self,
        allowed: Iterable[AllowedKey] = (),
        *,
        required: bool = False,
        stored: Callable[[], tuple[AllowedKey, ...] | None] = lambda: None,
        operator_key: str | None = None,
    ) -> None:
        """Accept the `allowed` keys and those that `stored` returns, which may change at any time.

        `stored` returns None if no key was ever stored, and an empty tuple if all were revoked.
        """
        self._allowed = tuple(allowed)
        self._stored = stored
        self._required = required
        self._operator = digest_of_key(operator_key) if operator_key else None
        self.without_key = None if required else ANONYMOUS
        """The caller of a call without a key; None where that is refused."""

    @property
    def is_key_required(self) -> bool:
        """Return whether a call without a key is refused."""
        return self._required

    @property
    def has_operator_key(self) -> bool:
        """Return whether an operator key is set, with which approvals are decided over HTTP."""
        return self._operator is not None

    def identify(self, key: str | None) -> Caller:
        """Return the caller of `key`.

        1. No key, and none required: anonymous.
        2. The operator key: refused. The operator key decides approvals; it cannot call tools.
        3. No key was ever configured, and none is required: anonymous, whatever the key.
        4. A configured key: its caller. For a key of the settings the store is not needed.

        Raises `Refused` in every other case: a wrong key never counts as no key. Raises `OSError` where only
        the store could tell, and cannot be read.
        """
        if key is None:
            if self.without_key is None:
                raise Refused(Reason.UNAUTHORIZED)
            return self.without_key
        digest = digest_of_key(key)
        if self.is_operator(key):
            raise Refused(Reason.UNAUTHORIZED)
        owner = _owner_of(digest, self._allowed)
        try:
            stored = self._stored()
        except OSError:
            if owner is None:
                raise
            return owner
        if stored is None and not self._allowed and not self._required:
            return ANONYMOUS
        owner = _owner_of(digest, stored or ()) or owner
        if owner is None:
            raise Refused(Reason.UNAUTHORIZED)
        return owner

    def identify_operator(self, key: str | None) -> Caller:
        """Return the operator, if `key` is the operator key.

        Raises `Refused` for every other key.
        """
        if not self.is_operator(key):
            hint = _OPERATORS_KEY if self.has_operator_key else _NO_OPERATORS_KEY
            raise Refused(Reason.UNAUTHORIZED, details={"hint": hint})
        return OPERATOR

    def is_operator(self, key: str | None) -> bool:
        """Return whether `key` is the operator key, which decides approvals."""
        return (
            key is not None
            and self._operator is not None
            and is_same_digest(self._operator, digest_of_key(key))
        )


def _owner_of(digest: str, keys: Iterable[AllowedKey]) -> Caller | None:
    """Return the caller of the key with this digest, if it is one of `keys`."""
    owner = None
    for each in keys:  # all of them, so that timing does not reveal a near match
        if is_same_digest(each.sha256.lower(), digest):
            owner = Caller(each.name, each.tools)
    return owner


# Which names a caller may have.

_NAME: Final = late_pattern(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)


def problem_of_caller_name(name: str) -> str | None:
    """Return why a caller cannot have this name, and the fix; None if it can."""
    if not _NAME.fullmatch(name):
        return (
            f"the name {name[:40]!r} cannot be used: take 1 to 64 letters, digits and any of '._@+-', "
            "a letter or a digit first"
        )
    if name in (ANONYMOUS.name, OPERATOR.name):
        return f"{name} is a reserved name; choose a different one"
    return None


# The keys in the store.

_ID_BYTES: Final = 4


class BadKeyRequest(ValueError):
    """A request for a key that is not valid; the message gives the reason and the fix."""


class KeptKey(NamedTuple):
    """A stored key, without its digest."""

    id: str
    name: str
    """The caller's name. A caller may have several keys, while a new one replaces an old one."""
    tools: tuple[str, ...]
    """Patterns of the tools that it gives access to."""
    made_at: str
    revoked_at: str | None = None


class NewKey(NamedTuple):
    """A new key, with its text, which is not stored."""

    kept: KeptKey
    text: str


class Keys:
    """The keys of a store."""

    def __init__(self, store: StorePort, clock: Clock, *, draw: Callable[[int], bytes] = os.urandom) -> None:
        """Keep keys in `store`; `draw` returns random bytes."""
        self._store = store
        self._clock = clock
        self._draw = draw
        self._watched = store.watched(_configured, None)

    def allowed(self) -> tuple[AllowedKey, ...]:
        """Return the keys that are valid now, whichever process created or revoked them.

        Raises `StoreError` where the store cannot be read.
        """
        return self.configured() or ()

    def configured(self) -> tuple[AllowedKey, ...] | None:
        """Return the valid keys, or None where no key was ever created.

        After the last key is revoked it returns no keys, so that the boundary does not become open.

        Raises `StoreError` where the store cannot be read.
        """
        return self._watched()

    def kept(self) -> list[KeptKey]:
        """Return all keys, revoked ones too, in the order of their creation.

        Raises `StoreError` where the store cannot be read.
        """
        return self._store.read(_kept, [])

    async def create(self, name: str, tools: Sequence[str] = ("*",)) -> NewKey:
        """Create a key for the caller `name` that gives access to the tools matched by the patterns.

        Raises `BadKeyRequest` for an invalid name or pattern, `StoreError` where it cannot be stored.
        """
        if problem := problem_of_caller_name(name):
            raise BadKeyRequest(problem)
        for pattern in tools:
            if (problem := problem_of(pattern)) is not None:
                raise BadKeyRequest(f"the pattern {pattern[:40]!r} matches no tool: {problem}")
        if not tools:
            raise BadKeyRequest("a key needs at least one pattern of tools; use '*' for all")
        text = new_key(self._draw)
        kept = KeptKey(self._draw(_ID_BYTES).hex(), name, tuple(tools), self._clock.now())
        digest = digest_of_key(text)
        await asyncio.wrap_future(self._store.submit(lambda connection: _insert(connection, kept, digest)))
        return NewKey(kept, text)

    async def revoke(self, id_or_name: str) -> list[KeptKey]:
        """Revoke the key with this id, or all keys of the caller with this name; return those revoked.

        Raises `StoreError` where that cannot be written.
        """
        if not self.kept():  # do not create a file
            return []
        now = self._clock.now()
        job = self._store.submit(lambda connection: _revoke(connection, id_or_name, now))
        return await asyncio.wrap_future(job)


def _configured(connection: Connection) -> tuple[AllowedKey, ...] | None:
    rows = list(connection.execute("SELECT name, sha256, tools, revoked_at FROM caller_key"))
    if not rows:
        return None
    return tuple(
        AllowedKey(name, digest, tuple(json.loads(tools)))
        for name, digest, tools, revoked_at in rows
        if revoked_at is None
    )


def _kept(connection: Connection) -> list[KeptKey]:
    rows = connection.execute(
        "SELECT id, name, tools, made_at, revoked_at FROM caller_key ORDER BY made_at, rowid"
    )
    return [
        KeptKey(id, name, tuple(json.loads(tools)), made_at, revoked_at)
        for id, name, tools, made_at, revoked_at in rows  # noqa: A001 - as in a key
    ]


def _insert(connection: Connection, kept: KeptKey, digest: str) -> None:
    connection.execute(
        "INSERT INTO caller_key (id, name, sha256, tools, made_at) VALUES (?, ?, ?, ?, ?)",
        (kept.id, kept.name, digest, json.dumps(kept.tools), kept.made_at),
    )


def _revoke(connection: Connection, id_or_name: str, now: str) -> list[KeptKey]:
    good = [key for key in _kept(connection) if key.revoked_at is None]
    # Ids first, because a caller's name may look like an id.
    chosen = [key for key in good if key.id == id_or_name] or [key for key in good if key.name == id_or_name]
    for key in chosen:
        connection.execute("UPDATE caller_key SET revoked_at = ? WHERE id = ?", (now, key.id))
    return [key._replace(revoked_at=now) for key in chosen]
