"""Frames made to break parsers, over a connection: the right verdict, and the next request is served."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from support.counts import count, seed
from support.in_process_connection import STATELESS_META, Connection, frame_of
from support.mcp_http_client import run, serving
from support.portbook_process import TESTS

ROWS = [json.loads(line) for line in (TESTS / "corpora" / "hostile_frames.jsonl").read_text().splitlines()]
EXAMPLES = json.loads((TESTS / "corpora" / "jsonrpc_spec_examples.json").read_text())

TOOL = """
from portbook import Toolset
toolset = Toolset("hostile")
@toolset.tool(effect="read", inline=True)
def echo(text: str) -> str: return text
"""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Connection:
    folder: Path = tmp_path_factory.mktemp("hostile")
    (folder / "tools.py").write_text(TOOL)
    return Connection(tools=folder / "tools.py")


def is_error(answer: Any, codes: list[int]) -> bool:
    if answer.get("result", {}).get("ok") is False:  # the asset contract's frame for what is too large
        return answer["id"] is None
    return answer.get("error", {}).get("code") in codes


def verdict(row: dict[str, Any], answers: list[Any]) -> bool:
    kind, codes = row["expect"]["kind"], row["expect"].get("codes", [])
    if not answers:
        return kind.startswith("no_reply")
    (answer,) = answers
    result = answer.get("result")
    is_ok = result is not None and not result.get("isError") and result.get("ok") is not False
    return {
        "ok": is_ok,
        "error": is_error(answer, codes),
        "ok_or_error": is_ok or is_error(answer, codes),
        "no_reply_or_error": is_error(answer, codes),
        "tool_error_or_error": is_error(answer, codes) or bool(result and result.get("isError")),
        "error_or_ok_under_cap": is_error(answer, codes) or is_ok,
    }.get(kind, False)


@pytest.mark.covers("001.hostile-frames")
@pytest.mark.parametrize("row", [row for row in ROWS if "stdio" in row["doors"]], ids=lambda row: row["name"])
def test_a_hostile_frame_gets_its_verdict_and_the_next_one_is_served(
    row: dict[str, Any], connection: Connection
) -> None:
    frame = frame_of(row)
    answers = connection.send(frame)
    assert verdict(row, answers), (row["expect"], json.dumps(answers)[:500])
    for answer in answers:
        assert len(json.dumps(answer)) < 20_000 or "result" in answer
    good = {"name": "echo", "arguments": {"text": "x"}, "_meta": STATELESS_META}
    assert connection.request("tools/call", good, id="sentinel")["result"]["content"][0]["text"] == "x"


@pytest.mark.covers("design.mcp-http.hostile-frames")
def test_every_hostile_frame_gets_the_same_verdict_over_http_and_the_next_one_is_served(
    tmp_path: Path, connection: Connection
) -> None:
    (tmp_path / "tools.py").write_text(TOOL)
    good = {"name": "echo", "arguments": {"text": "x"}, "_meta": STATELESS_META}
    sentinel = {"jsonrpc": "2.0", "id": "sentinel", "method": "tools/call", "params": good}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo"}

    rows = [row for row in ROWS if "http" in row["doors"]]
    over_stdio = {row["name"]: connection.send(frame_of(row)) for row in rows}

    async def main() -> None:
        async with serving(tmp_path, tmp_path / "tools.py") as client:
            for row in rows:
                frame = frame_of(row)
                exchange = await client.send(frame, **_mirrored(frame))
                answers = exchange.messages
                assert verdict(row, answers), (row["name"], row["expect"], exchange.body[:500])
                assert _without_id(answers) == _without_id(over_stdio[row["name"]]), row["name"]
                assert (await client.send(sentinel, **headers)).json["result"]["content"][0]["text"] == "x"

    run(main())


def _mirrored(frame: bytes) -> dict[str, str]:
    """The headers that a client would send with a frame, as far as it can be read at all."""
    try:
        message = json.loads(frame)
        params = message["params"]
        said = {"mcp-protocol-version": params["_meta"]["io.modelcontextprotocol/protocolVersion"]}
        said |= {"mcp-method": message["method"], "mcp-name": params.get("name")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return {name: _spelled(value) for name, value in said.items() if isinstance(value, str)}


def _spelled(value: str) -> str:
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _without_id(answers: list[Any]) -> list[Any]:
    return [{name: value for name, value in answer.items() if name != "id"} for answer in answers]


def _altered(frame: bytes, chance: random.Random) -> bytes:
    """A frame with some bytes changed, lost, doubled or moved; still one line."""
    altered = bytearray(frame)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(altered) + 1)
        length = chance.randint(1, 8)
        match chance.randrange(4):
            case 0:
                altered[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del altered[at : at + length]
            case 2:
                altered[at:at] = altered[at : at + length]
            case _:
                altered[at:at] = chance.choice(ALTERATIONS)
    return bytes(altered).replace(b"\n", b" ")


ALTERATIONS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b",",
    b":",
    b"null",
    b"1e999",
    b'"id":1,',
    b"\xff",
    b"\\ud800",
    b"-",
]
# Messages that nobody waits for, beside those of the corpus.
UNAWAITED = [
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/no_such"}',
    b'{"jsonrpc":"2.0","id":"x-1","result":{}}',
    b'{"jsonrpc":"2.0","id":"x-1","error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":"x-1","result":{},"error":{"code":1,"message":"x"}}',
    b'[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}},1]',
]
SHORT = [frame for row in ROWS if len(frame := frame_of(row)) < 2_000]
HEEDED = ("notifications/initialized", "notifications/roots/list_changed")


def _expected_records(frame: bytes, *, is_batch: bool = False) -> set[int]:
    """How many records a frame may leave: one for each message, none for a notification that is heeded."""
    try:
        message = json.loads(frame)
    except (ValueError, RecursionError):
        return {1}
    if is_batch and isinstance(message, list) and 0 < len(message) <= 100:
        heeded = sum(_may_be_heeded(each) for each in message)
        return set(range(len(message) - heeded, len(message) + 1)) | {1}  # 1: our parser is stricter
    return {0, 1} if _may_be_heeded(message) else {1}


def _may_be_heeded(message: Any) -> bool:
    return isinstance(message, dict) and message.get("method") in HEEDED


@pytest.mark.soak("altered frames")
@pytest.mark.parametrize("revision", [None, "2025-03-26", "2025-11-25"])
def test_a_frame_that_chance_has_altered_has_one_answer_at_most_and_one_record(
    tmp_path: Path, revision: str | None
) -> None:
    (tmp_path / "tools.py").write_text(TOOL)
    connection = Connection(tools=tmp_path / "tools.py")
    if revision is not None:
        connection.open(revision)
    chance = random.Random(seed())
    good = {"name": "echo", "arguments": {"text": "x"}, "_meta": STATELESS_META}
    for number in range(count("altered frames")):
        frame = _altered(chance.choice((*SHORT, *UNAWAITED)), chance)
        connection.sink.records.clear()
        answers = connection.send(frame)
        if frame.strip(b" \t\r"):
            found = len(connection.sink.records)
            assert found in _expected_records(frame, is_batch=revision == "2025-03-26"), frame
        answers = [each for answer in answers for each in (answer if isinstance(answer, list) else [answer])]
        assert len(answers) <= 1 or revision == "2025-03-26", frame
        for answer in answers:
            assert answer["jsonrpc"] == "2.0", frame
            assert ("result" in answer) != ("error" in answer), frame
        if number % 10 == 0:
            assert connection.request("tools/call", good)["result"]["content"][0]["text"] == "x", frame


@pytest.mark.soak("altered frames")
@pytest.mark.parametrize("path", ["/rpc", "/mcp", "/mcp in a session", "/mcp without one"])
def test_a_body_that_chance_has_altered_has_one_record(tmp_path: Path, path: str) -> None:
    (tmp_path / "tools.py").write_text(TOOL)
    chance = random.Random(seed())

    async def main() -> None:
        async with serving(tmp_path, tmp_path / "tools.py") as client:
            if path == "/mcp in a session":
                await client.open("2025-03-26")
            elif path == "/mcp without one":
                await client.open("2026-07-28")
            for _ in range(count("altered frames")):
                frame = _altered(chance.choice((*SHORT, *UNAWAITED)), chance)
                client.sink.records.clear()
                exchange = await client.send(frame, path=path.partition(" ")[0])
                expected = _expected_records(frame, is_batch=path == "/mcp in a session")
                assert len(client.sink.records) in expected, frame
                assert exchange.status == 202 or len(exchange.messages) <= 1, frame

    asyncio.run(main())


def test_the_corpus_is_whole() -> None:
    assert len([row for row in ROWS if "stdio" in row["doors"]]) >= 100
    assert len([row for row in ROWS if "http" in row["doors"]]) >= 100


# What the design rules where JSON-RPC's examples and the contracts differ: no batches, and an unknown method
# that is no MCP answers as the asset contract says.
UNSUPPORTED = {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}
RULED = {
    "positional params": UNSUPPORTED,
    "positional params swapped": UNSUPPORTED,
    "named params order": UNSUPPORTED,
    "non-existent method": UNSUPPORTED,
    "notification": None,
    "notification no params": None,
    "invalid JSON": -32700,
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_the_examples_of_json_rpc_get_the_verdict_that_was_ruled(
    example: dict[str, Any], connection: Connection
) -> None:
    frame = example["request"].encode()
    answers = connection.send(frame.replace(b"\n", b" "))
    expected = RULED.get(example["name"], -32700 if "invalid JSON" in example["name"] else -32600)
    told = [answer["result"] if "result" in answer else answer["error"]["code"] for answer in answers]
    assert told == ([] if expected is None else [expected])
