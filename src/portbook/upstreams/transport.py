"""What a transport to a server does, and what it tells of."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from portbook.exception_place import place_of
from portbook.model import JSONObject
from portbook.wire.lines_and_size_limit import Frame

__all__ = [
    "MAX_ANSWER_BYTES",
    "BadStatus",
    "ConnectionLost",
    "NotSent",
    "Receiver",
    "SaysNothing",
    "SessionLost",
    "UpstreamLink",
    "unexpected_end",
]


# The longest message of a server: a picture of a few megabytes, in base64.
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024


class ConnectionLost(Exception):
    """A request got no answer because its connection ended; the message says why, and quotes nothing."""


class NotSent(Exception):
    """Nothing was sent; the message says why, and quotes nothing that a server sent."""

    def __init__(self, problem: str, last_words: str | None = None) -> None:
        super().__init__(problem)
        self.last_words = last_words
        """What the server said before it ended, for the operator."""


class SessionLost(NotSent):
    """The server has forgotten the session, and so did not look at the request."""


class BadStatus(ConnectionLost):
    """A request that HTTP refused."""


class SaysNothing(BadStatus):
    """An answer that says nothing of the revision that a server speaks: about credentials, load or time."""


class Receiver(Protocol):
    """What a transport delivers to."""

    def received(self, frame: Frame, of: int | None) -> None:
        """Take one message; `of` is the request whose own stream it came in, where there is one."""
        ...

    def awaits(self, of: int) -> bool:
        """Return whether a request is still to be answered."""
        ...

    def failed(self, of: int, error: Exception) -> None:
        """Learn that a request will not be answered."""
        ...

    def unusable(self, of: int, pointer: str, problem: str) -> None:
        """Learn that the answer to a request breaks the protocol, and where."""
        ...

    def troubled(self, problem: str | None) -> None:
        """Learn what keeps every request from being answered; None where nothing does any more."""
        ...

    def lost(self, problem: str) -> None:
        """Learn that nothing more will come."""
        ...


class UpstreamLink(Protocol):
    """The way to one server."""

    @property
    def last_words(self) -> str | None:
        """Return what the server said last beside the protocol, for the operator alone."""
        ...

    @property
    def knows_requests(self) -> bool:
        """Return whether each request has a stream of its own, so that what belongs to it is known."""
        ...

    async def open(self, receiver: Receiver) -> None:
        """Begin to deliver to `receiver`.

        Raises `NotSent` where the server cannot be reached or started.
        """
        ...

    def send(self, message: JSONObject, data: bytes, of: int | None = None) -> None:
        """Send a message, `data` being its JSON; `of` is its number if it is a request.

        Raises `NotSent` where it cannot be sent.
        """
        ...

    def abandon(self, of: int) -> None:
        """Stop waiting for the answer to a request."""
        ...

    def agreed(self, revision: str) -> None:
        """Learn the revision that the connection is in from now on."""
        ...

    async def close(self) -> None:
        """End the connection, and all that was started for it."""
        ...


# What a task of ours ended with that it did not expect: told by its type and place, never by its words.
#
# An exception that nobody takes would be printed with everything in it, credentials included.


def unexpected_end(task: asyncio.Task[None]) -> ConnectionLost | None:
    """Return the failure of a task that has ended; None where it ended as it should, or was cancelled."""
    error = None if task.cancelled() else task.exception()
    return None if error is None else ConnectionLost(f"Portbook could not go on with it: {place_of(error)}")
