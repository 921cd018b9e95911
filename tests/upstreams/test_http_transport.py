"""Streamable HTTP as a client: sessions, streams that end early, and refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from portbook.errors import Finding
from portbook.net.destinations import Destinations
from portbook.net.http_client import HttpClient
from portbook.upstreams.http_transport import HttpTransport
from portbook.upstreams.message_checks_and_meta import BadAnswer
from portbook.upstreams.secret_values import GivenSecrets, ValueReader
from portbook.upstreams.transport import BadStatus, NotSent, SaysNothing, SessionLost
from portbook.wire.lines_and_size_limit import Frame
from support.fake_upstream import text

JSON = "application/json"
EVENTS = "text/event-stream"
Respond = Callable[[str, dict[str, str], Any], tuple[int, dict[str, str], bytes]]


class Receiver:
    def __init__(self) -> None:
        self.open: dict[int, asyncio.Future[Any]] = {}
        self.lost_because: list[str] = []
        self.troubles: list[str | None] = []

    def expect(self, of: int) -> asyncio.Future[Any]:
        self.open[of] = asyncio.get_running_loop().create_future()
        return self.open[of]

    def received(self, frame: Frame, of: int | None) -> None:
        assert isinstance(frame, bytes)
        if not frame.startswith(b"{"):
            return
        message = json.loads(frame)
        waiting = self.open.pop(message.get("id"), None)
        if waiting is not None:
            waiting.set_result(message)

    def awaits(self, of: int) -> bool:
        return of in self.open

    def failed(self, of: int, error: Exception) -> None:
        waiting = self.open.pop(of, None)
        if waiting is not None:
            waiting.set_exception(error)

    def unusable(self, of: int, pointer: str, problem: str) -> None:
        self.failed(of, BadAnswer((Finding(pointer, problem, "http", ""),)))

    def troubled(self, problem: str | None) -> None:
        self.troubles.append(problem)

    def lost(self, problem: str) -> None:
        self.lost_because.append(problem)


def talk(
    respond: Respond, *messages: dict[str, Any], revision: str = "2025-11-25"
) -> tuple[list[Any], Receiver]:
    """Send requests one after the other to a server that responds so; return what came of each."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        status, told, answer = respond(head[0].split()[0], headers, json.loads(body) if body else None)
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in told.items())]
        lines += [f"Content-Length: {len(answer)}", "Connection: close", "", ""]
        writer.write("\r\n".join(lines).encode() + answer)
        await writer.drain()
        writer.close()

    async def main() -> tuple[list[Any], Receiver]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        permitted, client, receiver = Destinations.of_base_urls([url]), HttpClient(), Receiver()
        transport = HttpTransport(url, _no_headers(), client, lambda: permitted, lambda _: ())
        await transport.open(receiver)
        transport.agreed(revision)
        outcomes: list[Any] = []
        for number, message in enumerate(messages, 1):
            waiting = receiver.expect(number)
            whole = {"jsonrpc": "2.0", "id": number, **message}
            transport.send(whole, json.dumps(whole, separators=(",", ":")).encode(), number)
            try:
                outcomes.append(await asyncio.wait_for(waiting, 10))
            except Exception as error:
                outcomes.append(error)
        await transport.close()
        await client.close()
        server.close()
        return outcomes, receiver

    return asyncio.run(main())


def _no_headers() -> ValueReader:
    from pathlib import Path

    return ValueReader("mcp.x.headers", {}, {}, Path(), GivenSecrets())


def answer(message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": text("x")}).encode()


CALL = {"method": "tools/call", "params": {"name": "größe", "arguments": {}}}


def test_a_session_is_kept_and_given_back_at_the_end() -> None:
    seen: list[tuple[str, str | None]] = []

    def respond(method: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, str], bytes]:
        seen.append((method, headers.get("mcp-session-id")))
        if body is None:
            return 204, {}, b""
        more = {"Mcp-Session-Id": "s1"} if body["method"] == "initialize" else {}
        return 200, {"Content-Type": JSON, **more}, answer(body)

    outcomes, _ = talk(respond, {"method": "initialize", "params": {}}, CALL)
    assert all("result" in each for each in outcomes)
    assert seen == [("POST", None), ("POST", "s1"), ("DELETE", "s1")]


def test_a_forgotten_session_is_told_as_not_sent() -> None:
    def respond(method: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, str], bytes]:
        if body is not None and body["method"] == "initialize":
            return 200, {"Content-Type": JSON, "Mcp-Session-Id": "s1"}, answer(body)
        return 404, {}, b""

    outcomes, receiver = talk(respond, {"method": "initialize", "params": {}}, CALL)
    assert isinstance(outcomes[1], SessionLost)
    assert receiver.lost_because == ["it has forgotten the session"]


def test_a_stream_that_ends_early_is_resumed_from_its_last_event() -> None:
    seen: list[str | None] = []

    def respond(method: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, str], bytes]:
        seen.append(headers.get("last-event-id"))
        if method == "POST":
            return 200, {"Content-Type": EVENTS}, b"id: 4\nretry: 1\ndata: \n\n"
        return 200, {"Content-Type": EVENTS}, b"data: " + answer({"id": 1}) + b"\n\n"

    outcomes, _ = talk(respond, CALL)
    assert outcomes[0]["result"] == text("x")
    assert seen == [None, "4"]


@pytest.mark.parametrize(("status", "error"), [(401, SaysNothing), (503, SaysNothing), (400, BadStatus)])
def test_a_refusal_of_http_is_told_by_what_it_says(status: int, error: type[Exception]) -> None:
    outcomes, _ = talk(lambda *_: (status, {}, b""), CALL)
    assert type(outcomes[0]) is error
    assert str(status) in str(outcomes[0])


@pytest.mark.parametrize(
    ("headers", "body", "pointer", "words"),
    [
        ({"Content-Type": "text/html"}, b"<html>", "", "Content-Type"),
        ({"Content-Type": JSON, "Content-Encoding": "gzip"}, b"\x1f\x8b", "", "compressed"),
        ({"Content-Type": JSON}, b"", "", "no JSON object"),
        ({"Content-Type": JSON}, answer({"id": 7}), "/id", "not the id"),
        ({"Content-Type": JSON}, answer({"id": "1"}), "/id", "not the id"),
    ],
)
def test_an_answer_that_answers_nothing_is_told_by_what_is_wrong(
    headers: dict[str, str], body: bytes, pointer: str, words: str
) -> None:
    outcomes, _ = talk(lambda *_: (200, headers, body), CALL)
    assert isinstance(outcomes[0], BadAnswer)
    finding = outcomes[0].findings[0]
    assert finding.pointer == pointer
    assert words in finding.message


def test_credentials_that_are_not_accepted_are_a_trouble_until_they_are() -> None:
    statuses = iter((401, 401, 200, 200))

    def respond(method: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, str], bytes]:
        return next(statuses), {"Content-Type": JSON}, answer(body)

    outcomes, receiver = talk(respond, CALL, CALL, CALL, CALL)
    problem = "it answered with the status 401: its credentials were not accepted; see mcp.x.headers"
    assert str(outcomes[0]) == problem
    assert receiver.troubles == [problem, problem, None]


def test_in_the_newest_revision_headers_repeat_the_message() -> None:
    seen: dict[str, str] = {}

    def respond(method: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, str], bytes]:
        seen.update(headers)
        return 200, {"Content-Type": JSON}, answer(body)

    talk(respond, CALL, revision="2026-07-28")
    assert (seen["mcp-method"], seen["mcp-protocol-version"]) == ("tools/call", "2026-07-28")
    assert seen["mcp-name"].startswith("=?base64?")


def test_a_server_that_asks_faster_than_it_is_answered_gets_no_more_answers() -> None:
    async def main() -> None:
        url = "http://127.0.0.1:1/mcp"
        transport = HttpTransport(url, _no_headers(), HttpClient(), Destinations, lambda _: ())
        await transport.open(Receiver())
        pong = {"jsonrpc": "2.0", "id": 1, "result": {}}
        for _ in range(256):
            transport.send(pong, b"{}")
        with pytest.raises(NotSent, match="does not take"):
            transport.send(pong, b"{}")
        await transport.close()

    asyncio.run(main())
