"""`Keys`: the digests of callers' keys; operators create and revoke keys while servers run."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from portbook.access.callers import AllowedKey, digest_of_key, new_key, problem_of_caller_name
from portbook.clock import Clock
from portbook.globs import problem_of
from portbook.stores.connection_and_clock import Connection
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["BadKeyRequest", "KeptKey", "Keys", "NewKey"]

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
