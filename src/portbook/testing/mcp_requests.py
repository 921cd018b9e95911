"""One caller's way to the boundary: requests of MCP, in whichever revision, and answers to what tools ask."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from portbook.canonical import NotJSON, json_bytes
from portbook.errors import REASONS, Reason
from portbook.mcp.connection import McpConnection
from portbook.mcp.messages_from_client import Work
from portbook.model import Answer, JSONObject
from portbook.protocol.negotiation import Session
from portbook.protocol.revisions_and_methods import REVISIONS, Revision
from portbook.stages.state import CallState
from portbook.testing.boundary_setup import World
from portbook.testing.call_result import Noted, noting
from portbook.testing.questions_and_answers import (
    Answers,
    Inquiry,
    capabilities_of,
    given_by,
    inquiry_of,
    require_answers,
    response_to,
)
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, OVERSIZE, Frame

__all__ = ["Replied", "Speaker", "Voice", "json_of"]

_META: Final = "io.modelcontextprotocol/"

_NO_ANSWER: Final = REASONS[Reason.INTERNAL].mcp

# More rounds than any form has pages: a tool that asks on does not take what it is told.
_MAX_ROUNDS: Final = 50


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks, and how."""

    revision: str
    key: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: Answers | None = None

    def __post_init__(self) -> None:
        """Raise `LookupError` for a revision that there is not, `TypeError` for what can answer nothing."""
        if self.revision not in REVISIONS:
            raise LookupError(f"there is no revision {self.revision!r} of MCP, but {', '.join(REVISIONS)}")
        require_answers(self.answers)


@dataclass(frozen=True, slots=True)
class Replied:
    """The answer to a request, and what was noted and asked before it."""

    answer: dict[str, Any]
    noted: Noted
    asked: list[Inquiry]


class Speaker:
    """Sends messages, and answers questions with what the test gave."""

    def __init__(self, world: World, voice: Voice) -> None:
        """Speak with a `voice`."""
        self.voice = voice
        self.revision: Revision = REVISIONS[voice.revision]
        self.notifications: list[dict[str, Any]] = []
        self._world = world
        self._agreed: McpConnection | None = None
        self._raw: McpConnection | None = None
        self._count = 0
        self._settling: set[asyncio.Task[None]] = set()

    async def request(self, method: str, params: Mapping[str, Any]) -> Replied:
        """Send a request, and again with answers where the tool asks for them; return the last answer.

        Raises what the test's own functions raised, and `ValueError` for a notification.
        """
        if method.startswith("notifications/"):
            raise ValueError(f"{method} is a notification, which has no answer: send it with send()")
        noted, asked = Noted(), list[Inquiry]()
        before = noting.set(noted)
        try:
            answer = await self._exchange(method, params, asked)
        finally:
            noting.reset(before)
        if noted.mistakes:
            raise noted.mistakes[0]
        asked += [inquiry_of(message) for message in noted.messages if "id" in message]
        return Replied(answer, noted, asked)

    async def send(self, message: bytes | str | Mapping[str, Any] | list[Any]) -> Any:
        """Send one message of any contract as it is; return the answer, or None where there is none."""
        self._world.require_ready()
        frame = _frame(message)
        if self._raw is None:
            self._raw = self._connect(None)
        answer = await _answer_of(self._raw.receive(frame))
        return None if answer.body is None or answer.is_notification else json.loads(answer.body)

    async def _exchange(self, method: str, params: Mapping[str, Any], asked: list[Inquiry]) -> dict[str, Any]:
        given: dict[str, Any] = {**params, "_meta": {**self._meta(), **params.get("_meta", {})}}
        for _ in range(_MAX_ROUNDS):
            answer = await self._ask(method, given)
            result: dict[str, Any] = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            needed = {name: inquiry_of(each) for name, each in result["inputRequests"].items()}
            asked += needed.values()
            responses = {name: await self._response(each) for name, each in needed.items()}
            given = {**given, "inputResponses": responses, "requestState": result["requestState"]}
        raise RuntimeError(f"{method} asked {_MAX_ROUNDS} times: the tool does not accept its answers")

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._world.require_ready()
        if self._agreed is None:
            self._agreed = self._connect(self._session(), is_official=True)
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        answer = await _answer_of(self._agreed.receive(_frame(message)))
        assert answer.body is not None
        return json.loads(answer.body)

    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"progressToken": self._count + 1, **self.voice.meta}
        if not self.revision.has_handshake:
            meta[_META + "protocolVersion"] = self.revision.name
            meta[_META + "clientCapabilities"] = capabilities_of(self.voice.answers)
            meta[_META + "logLevel"] = "debug"
        return meta

    def _session(self) -> Session | None:
        """Return what `initialize` would have agreed on: as if it had been, and without its record."""
        if not self.revision.has_handshake:
            return None
        session = Session()
        session.agree(self.revision, capabilities_of(self.voice.answers))
        session.hear_from("debug")
        return session

    def _connect(self, session: Session | None, *, is_official: bool = False) -> McpConnection:
        connection: McpConnection | None = None

        def emit(
            message: bytes,
            is_wanted: Callable[[], bool],
            *,
            is_vital: bool = False,
            on_room: Callable[[], None] | None = None,
        ) -> bool:
            if is_wanted():
                self._hear(json.loads(message), connection)
            return True

        arrival = self._world.arrival(self.voice.key)
        connection = self._world.app.boundary.connect(arrival, emit, is_official=is_official, session=session)
        self._world.connections.append(connection)
        return connection

    def _hear(self, message: dict[str, Any], connection: McpConnection | None) -> None:
        """Take what the server says by itself. From any thread; questions come on the loop's own."""
        noted = noting.get()
        if noted is not None:
            noted.messages.append(message)
        if "id" not in message:
            self.notifications.append(message)
        elif connection is not None:
            task = asyncio.get_running_loop().create_task(self._settle(message, connection))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _settle(self, message: dict[str, Any], connection: McpConnection) -> None:
        settled: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            frame = _frame({**settled, "result": await self._response(inquiry_of(message))})
        except Exception as error:  # noqa: BLE001 - the tool hears of it, and the test's call raises it
            if (noted := noting.get()) is not None:
                noted.mistakes.append(error)
            flaw = {"code": _NO_ANSWER.code, "message": "the test has no answer"}
            frame = _frame({**settled, "error": flaw})
        await _answer_of(connection.receive(frame))

    async def _response(self, inquiry: Inquiry) -> JSONObject:
        answers = self.voice.answers
        if answers is None:
            raise LookupError(f"the tool asks {inquiry.message!r}; give the client answers=")
        given = given_by(answers, inquiry)
        return response_to(inquiry, await given if inspect.isawaitable(given) else given)


def _frame(message: object) -> Frame:
    """Return a message as a door hands it on: in bytes, unless they are more than a frame may have.

    Raises `NotJSON` for what JSON cannot hold; the message names the place and its type.
    """
    if isinstance(message, bytes | str):
        data = message if isinstance(message, bytes) else message.encode()
    else:
        data = json_of(message)
    return OVERSIZE if len(data) > MAX_FRAME_BYTES else data


async def _answer_of(received: CallState | Work) -> Answer:
    return received.reply() if isinstance(received, CallState) else await received.answering


# JSON of what a test gives; what JSON cannot hold is named by its place and its type.


# Where a request has the arguments of its call: what a test passed by name.
_ARGUMENTS: Final = "/params/arguments"

# Deeper than any message that is sent; a value that contains itself ends here.
_MAX_DEPTH: Final = 250


def json_of(message: object) -> bytes:
    """Return `message` as compact JSON.

    Raises `NotJSON` for what JSON cannot hold; the message has its JSON Pointer and its Python type.
    """
    try:
        return json_bytes(cast("Any", message))
    except NotJSON:
        flaw = next(_flaws(message, "", _MAX_DEPTH), None)
        if flaw is None:
            raise
        pointer, problem = flaw
    if pointer.startswith(f"{_ARGUMENTS}/"):
        pointer = f"argument {pointer.removeprefix(_ARGUMENTS)}"
    raise NotJSON(f"{pointer or '(root)'}: {problem}")


def _flaws(value: Any, pointer: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the place of each part that JSON cannot hold, and what it is."""
    if depth == 0:
        yield pointer[:80], "nested too deeply"
    elif type(value) is dict:
        for key, each in cast("dict[Any, Any]", value).items():
            if type(key) is str:
                yield from _flaws(each, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", depth - 1)
            else:
                yield pointer, f"a key is {_type_of(key)}; JSON has keys of str alone"
    elif type(value) in (list, tuple):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _flaws(each, f"{pointer}/{index}", depth - 1)
    elif type(value) is float:
        if not math.isfinite(value):
            yield pointer, "JSON has no number that is not finite"
    elif not _is_json(value):
        yield pointer, f"JSON cannot hold this {_type_of(value)}; convert it first"


def _is_json(value: Any) -> bool:
    try:
        json_bytes(value)
    except NotJSON:
        return False
    return True


def _type_of(value: Any) -> str:
    kind = cast("type[object]", type(value))
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
