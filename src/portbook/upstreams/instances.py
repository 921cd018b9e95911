"""The processes of one server, or the connections to it: one for all callers, or one for each session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, NamedTuple

from portbook.upstreams.changed_lists import ChangedLists
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.transport import NotSent

__all__ = ["Instance", "InstanceOwner", "Instances"]

# Sessions are as many as clients like, and a process takes tens of megabytes.
_MAX_OWNED: Final = 64


class InstanceOwner(NamedTuple):
    """Whose process it is, where each session has its own; without a session, each caller."""

    caller: str | None
    """Part of it, because a session is what a caller names: nobody else's is meant by it."""
    session: str | None


class Instance:
    """One process of the server, or one connection to it."""

    def __init__(self, owner: InstanceOwner | None) -> None:
        self.owner = owner
        """None where it is for everybody."""
        self.connection: UpstreamConnection | None = None
        self.starting: asyncio.Task[UpstreamConnection] | None = None
        self.began_at = 0.0
        self.used_at = 0.0
        self.failures = 0
        self.retry_at = 0.0
        self.lists: ChangedLists | None = None
        """What it has announced of its lists; None before the first time."""
        self.idle: asyncio.TimerHandle | None = None
        self.again: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether it starts, or has requests under way."""
        return self.starting is not None or (self.connection is not None and self.connection.is_busy)

    def cancel_timers(self) -> None:
        """Wait for nothing any more."""
        for timer in (self.idle, self.again):
            if timer is not None:
                timer.cancel()
        self.idle = self.again = None


class Instances:
    """All of one server."""

    def __init__(self) -> None:
        self._found: dict[InstanceOwner | None, Instance] = {}

    def __iter__(self) -> Iterator[Instance]:
        return iter(tuple(self._found.values()))

    def find(self, owner: InstanceOwner | None) -> Instance | None:
        """Return the instance of an owner, None where there is none."""
        return self._found.get(owner)

    def add(self, owner: InstanceOwner | None) -> Instance:
        """Return a new instance."""
        made = self._found[owner] = Instance(owner)
        return made

    def surplus(self) -> Instance | None:
        """Return the instance that has to go before one more session gets its own, None where none has to.

        Raises `NotSent` where all of them are busy.
        """
        owned = [each for each in self if each.owner is not None]
        if len(owned) < _MAX_OWNED:
            return None
        idle = [each for each in owned if not each.is_busy]
        if not idle:
            raise NotSent(f"{len(owned)} sessions have a process of it already, and all are busy")
        return min(idle, key=lambda each: each.used_at)

    def of_session(self, session: str) -> list[Instance]:
        """Return the instances of a session."""
        return [each for each in self if each.owner is not None and each.owner.session == session]

    def drop(self, instance: Instance) -> None:
        """Forget an instance."""
        if self._found.get(instance.owner) is instance:
            del self._found[instance.owner]

    def connection(self) -> UpstreamConnection | None:
        """Return the connection of any of them, None where there is none."""
        return next((each.connection for each in self if each.connection is not None), None)
