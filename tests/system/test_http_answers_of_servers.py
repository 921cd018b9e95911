"""Servers over HTTP: answers that answer nothing, lost credentials and sessions, too many questions."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from support import forked_process
from support.mcp_peer import peer_of, table
from support.portbook_process import PORTBOOK
from support.running_processes import wait_until

JSON = "application/json"
TOOL = {"name": "say", "inputSchema": {"type": "object"}}
ABOUT: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "remote", "version": "1"},
}
SAID = {"content": [{"type": "text", "text": "said"}]}


class Answer(NamedTuple):
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({"Content-Type": JSON})
    body: bytes = b""


def answered(number: Any, result: Any) -> Answer:
    return Answer(body=json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())


def introduced(message: Any, session: str | None) -> Answer:
    """The answer to what comes before the first call."""
    if message["method"] == "tools/list":
        return answered(message["id"], {"tools": [TOOL]})
    if message["method"] != "initialize":
        return Answer(400)
    answer = answered(message["id"], ABOUT)
    begun = {} if session is None else {"Mcp-Session-Id": session}
    return answer._replace(headers={**answer.headers, **begun})


@contextlib.contextmanager
def remote(
    call: Callable[[Any, Message], Answer],
    take: Callable[[], None] = lambda: None,
    session: str | None = None,
) -> Iterator[str]:
    """A server that answers `tools/call` as `call` says, by its id and our headers; give its address.

    `take` is called for each answer of ours. With a `session`, that is what it gives when it begins.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "method" not in message:
                take()
            if "method" not in message or "id" not in message:
                self.give(Answer(202))
            elif message["method"] == "tools/call":
                self.give(call(message["id"], self.headers))
            else:
                self.give(introduced(message, session))

        def do_GET(self) -> None:
            self.give(Answer(405))

        def do_DELETE(self) -> None:
            self.give(Answer(200))

        def give(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f'url = "http://127.0.0.1:{server.server_address[1]}/mcp"'
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


WRONG: dict[str, tuple[Callable[[Any], Answer], str]] = {
    "a page": (lambda _: Answer(headers={"Content-Type": "text/html"}, body=b"<html>"), "Content-Type"),
    "gzip": (lambda _: Answer(headers={"Content-Type": JSON, "Content-Encoding": "gzip"}), "compressed"),
    "nothing": (lambda _: Answer(), "no JSON object"),
    "a different id": (lambda number: answered(number + 1, SAID), "/id"),
    "a text as its id": (lambda number: answered(str(number), SAID), "/id"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_answers_nothing_is_a_bad_result_and_says_why(tmp_path: Path, wrong: str) -> None:
    make, words = WRONG[wrong]
    with (
        remote(lambda number, _: make(number)) as address,
        peer_of(tmp_path, table("box", address)) as peer,
    ):
        told = json.dumps(peer.call("box__say"))
    assert "BAD_RESULT" in told
    records = "".join(path.read_text() for path in (tmp_path / "log").rglob("*.jsonl"))
    assert words in records


def test_a_renewed_token_is_read_again_and_one_that_is_not_accepted_is_told(tmp_path: Path) -> None:
    wanted, token = ["Bearer one-token-aaaa"], tmp_path / "token"
    token.write_text("Bearer one-token-aaaa\n")

    def call(number: Any, given: Message) -> Answer:
        return answered(number, SAID) if given["authorization"] == wanted[0] else Answer(401)

    with remote(call) as address:
        settings = table("box", address, 'headers = { Authorization = { file = "token" } }')
        with peer_of(tmp_path, settings) as peer:
            assert peer.text("box__say") == "said"
            wanted[0] = "Bearer two-token-bbbb"
            refused = json.dumps(peer.call("box__say"))
            assert "credentials were not accepted; see mcp.box.headers" in refused
            wait_until(lambda: "credentials were not accepted" in str(_last_error(tmp_path)))
            token.write_text("Bearer two-token-bbbb\n")
            assert peer.text("box__say") == "said"
            wait_until(lambda: _last_error(tmp_path) is None)


def _last_error(folder: Path) -> Any:
    done = forked_process.run([*PORTBOOK, "upstreams", "--json"], cwd=folder, capture_output=True, timeout=60)
    return json.loads(done.stdout)["upstreams"][0]["last_error"]


def test_a_server_that_forgets_every_session_is_an_upstream_error(tmp_path: Path) -> None:
    seen: list[Any] = []

    def call(number: Any, _: Message) -> Answer:
        seen.append(number)
        return Answer(404)

    with remote(call, session="one") as address, peer_of(tmp_path, table("box", address)) as peer:
        told = json.dumps(peer.call("box__say"))
    assert len(seen) == 2  # once more, in a new session
    assert "UPSTREAM_ERROR" in told
    assert "Nothing was sent" in told
    assert "raised" not in (tmp_path / "stderr").read_text()


@pytest.mark.parametrize("arguments", [{"method": "initialize"}, {"x": {"method": "initialize"}}])
def test_arguments_that_look_like_a_method_change_no_header(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    def call(number: Any, given: Message) -> Answer:
        named = given["mcp-session-id"], given["mcp-protocol-version"]
        return answered(number, SAID) if named == ("one", ABOUT["protocolVersion"]) else Answer(400)

    with remote(call, session="one") as address, peer_of(tmp_path, table("box", address)) as peer:
        assert peer.text("box__say", arguments) == "said"


def test_pings_that_come_faster_than_they_are_answered_are_answered_in_part(tmp_path: Path) -> None:
    asked, taken, may_go_on = 2000, list[None](), threading.Event()

    def take() -> None:
        taken.append(None)
        may_go_on.wait(30)

    def call(number: Any, _: Message) -> Answer:
        if may_go_on.is_set():
            return answered(number, SAID)
        pings = [{"jsonrpc": "2.0", "id": at, "method": "ping"} for at in range(asked)]
        said = {"jsonrpc": "2.0", "id": number, "result": SAID}
        events = "".join(f"data: {json.dumps(each)}\n\n" for each in (*pings, said))
        return Answer(headers={"Content-Type": "text/event-stream"}, body=events.encode())

    with remote(call, take) as address, peer_of(tmp_path, table("box", address)) as peer:
        assert peer.text("box__say") == "said"
        may_go_on.set()
        assert peer.text("box__say") == "said"  # in its turn, after the answers that waited
    assert 0 < len(taken) < asked / 4
