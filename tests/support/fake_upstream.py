"""A server in this process: what it was sent, and what a test lets it answer."""

from __future__ import annotations

import json
from typing import Any

from portbook.protocol.message_validation import SchemaValidator
from portbook.schema.official_schemas import SchemaStore
from portbook.upstreams.connection_and_server_questions import Events, UpstreamConnection
from portbook.upstreams.message_checks_and_meta import AnswerChecks
from portbook.upstreams.transport import NotSent, Receiver


def validator() -> SchemaValidator:
    made = SchemaValidator(SchemaStore())
    made.initialize()
    return made


class FakeLink:
    """The way to a server that a test plays."""

    knows_requests = False
    last_words: str | None = None

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.abandoned: list[int] = []
        self.revision: str | None = None
        self.is_open = True
        self.receiver: Receiver | None = None

    async def open(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, message: Any, data: bytes, of: int | None = None) -> None:
        if not self.is_open:
            raise NotSent("it has ended")
        assert json.loads(data) == message
        self.sent.append(message)
        self.answer(message)

    def answer(self, message: dict[str, Any]) -> None:
        """What a test's server does with a message."""

    def say(self, message: Any, of: int | None = None) -> None:
        assert self.receiver is not None
        frame = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.receiver.received(frame, of)

    def abandon(self, of: int) -> None:
        self.abandoned.append(of)

    def agreed(self, revision: str) -> None:
        self.revision = revision

    async def close(self) -> None:
        self.is_open = False


class Told:
    """What a connection told of."""

    def __init__(self) -> None:
        self.changed: list[tuple[str, Any]] = []
        self.lost: list[str] = []
        self.odd: list[str] = []
        self.warned: list[str] = []


async def connected(
    link: FakeLink, told: Told | None = None, *, is_enforced: bool = True
) -> UpstreamConnection:
    """A connection over `link`."""
    told = told or Told()
    checks = AnswerChecks(validator(), is_enforced=is_enforced, warn=told.warned.append)
    events = Events(
        lambda method, params: told.changed.append((method, params)),
        lambda _, problem: told.lost.append(problem),
        told.odd.append,
    )
    connection = UpstreamConnection(link, checks, events)
    await connection.open()
    return connection


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}
