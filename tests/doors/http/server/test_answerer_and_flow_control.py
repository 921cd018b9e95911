"""How one request is answered: at once, after its record, or later, and not at all if the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from portbook.doors.http.request import InboundRequest, RequestHead
from portbook.doors.http.response import HeldReply, Reply, Write
from portbook.doors.http.router import Refuse, Route, Router, Serve
from portbook.doors.http.server.answerer_and_flow_control import Answerer, ClientOutput
from portbook.doors.http.server.connection_limits_deadlines_and_overload import ConnectionLimits, Deadlines
from portbook.doors.http.server.open_connections import ConnectionState, OpenConnections
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.errors import Refused
from portbook.model import Answer
from portbook.net.allowed_hosts_and_origins import Hosts
from portbook.stages.state import CallState


@dataclass(eq=False)
class Scene:
    """A transport, a connection and records that note what happens to them."""

    notes: list[str] = field(default_factory=list[str])
    written: bytes = b""

    # a transport
    def set_write_buffer_limits(self, high: int) -> None: ...
    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.notes.append("written")
        self.written += data

    # a connection
    def give_way(self) -> None: ...
    def answered(self, *, is_whole: bool = True) -> None:
        self.notes.append("whole" if is_whole else "a part")

    def take_next(self) -> None:
        self.notes.append("next")

    # records, and a call
    def flush(self) -> None:
        self.notes.append("recorded")

    def reply(self) -> Answer:
        return Answer(b"{}", 200)


async def refuse(_head: RequestHead, refused: Refused) -> Reply:
    return Reply(refused.row.http, b"", refused.reason.value.encode())


def play(
    serve: Serve,
    main: Callable[[Answerer, Scene], Coroutine[Any, Any, None]],
    version: str = "1.1",
    refuse: Refuse = refuse,
) -> Scene:
    async def run() -> Scene:
        scene = Scene()
        router = Router({("POST", "/"): Route(serve, refuse)}, Hosts(is_exposed=False))
        shared = OpenConnections(router, ConnectionLimits(), Deadlines(), PeerAddresses())
        state = ConnectionState(scene, shared)
        state.begin(None)
        answerer = Answerer(scene, shared, state, ClientOutput(cast("asyncio.Transport", scene)))
        answerer.take(RequestHead("POST", "/", b"", [(b"host", b"localhost")], version), closes=False)
        await main(answerer, scene)
        return scene

    return asyncio.run(run())


async def answer(answerer: Answerer, _scene: Scene) -> None:
    answerer.answer(b"")
    await asyncio.sleep(0.01)


def test_a_reply_that_is_there_is_written_at_once_and_needs_no_task() -> None:
    async def main(answerer: Answerer, scene: Scene) -> None:
        answerer.answer(b"")
        assert (scene.notes, answerer.task) == (["written", "whole"], None)

    play(lambda _: Reply(200, b"", b"here"), main)


def test_the_reply_to_a_call_is_written_after_its_record() -> None:
    records = Scene()
    scene = play(lambda _: HeldReply(records, cast("CallState", records)), answer)
    assert (records.notes, scene.notes) == (["recorded"], ["written", "whole", "next"])


def test_a_reply_that_waits_is_written_when_it_is_there() -> None:
    async def serve(_request: InboundRequest) -> Reply:
        await asyncio.sleep(0)
        return Reply(200, b"", b"late")

    assert play(serve, answer).notes == ["written", "whole", "next"]


def test_a_stream_that_fails_is_not_whole_and_in_old_http_it_ends_with_its_connection() -> None:
    async def pieces(write: Write) -> None:
        await write(b"piece")
        raise OSError

    async def main(answerer: Answerer, scene: Scene) -> None:
        answerer.answer(b"")
        assert (scene.notes[-1], answerer.closes) == ("a part", True)
        assert b"connection: close" in scene.written

    play(lambda _: Reply(200, b"", stream=pieces), main, "1.0")


def test_nothing_is_written_to_a_client_that_has_left_but_what_it_began_to_send_is_recorded() -> None:
    told: list[Refused] = []

    async def refuse_it(_head: RequestHead, refused: Refused) -> Reply:
        told.append(refused)
        return Reply(400, b"")

    async def main(answerer: Answerer, _scene: Scene) -> None:
        answerer.cancel(has_begun_body=True)

    assert (play(lambda _: Reply(200, b""), main, refuse=refuse_it).notes, len(told)) == ([], 1)
