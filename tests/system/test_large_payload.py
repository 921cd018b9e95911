"""A large call is a few passes of native code over its bytes: no Python function runs once per item."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from bench.wire import frames
from portbook import Toolset
from portbook.app.assemble import assemble
from portbook.doors.ndjson import NdjsonDoor
from portbook.doors.stdio import Reader, Writer
from portbook.model import Arrival
from portbook.settings import load_settings
from portbook.testing import AsyncTestClient
from support.in_process_connection import handshake

FEW, MANY = 2_000, 20_000

# To compare the frame with what was parsed, for the size of the arguments, and as the result; a tenth more is
# one more. The records are written from bytes.
ENCODINGS: Final = 3

ARGUMENTS: Final = {"items": ['é \u2028 \\ " text', *("a line of text" for _ in range(4_000))]}
CALL: Final = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": ARGUMENTS},
}  # fmt: skip


class Steps:
    """Counts calls of Python functions and JSON encodings, in the loop's thread and in those it starts."""

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()
        self.encodings = 0
        self.threads: set[str] = set()
        self.is_counting = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.is_counting:
            return
        if event == "call":
            self.functions[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1
        elif event == "c_call":
            self.encodings += argument.__name__ == "dumps"


def toolset() -> Toolset:
    made = Toolset("payload")

    @made.tool(effect="read")
    async def echo(items: list[str]) -> dict[str, list[str]]:
        return {"items": items}

    return made


def steps_with(count: int, folder: Path) -> Steps:
    """Return what one call with so many items takes, beside the first call, which fills what is kept."""
    items = [f"a line of text with the number {number:08}" for number in range(count)]
    frame = frames("envelope", "echo", [1], items=items)[0]
    settings = load_settings(None, {}, {"audit.log_dir": folder / str(count), "docs.enabled": False}, folder)
    steps = Steps()

    async def serve() -> bytes | None:
        app = assemble(settings, is_exposed=False, toolsets=(toolset(),), environ={})
        try:
            await app.boundary.answer(frame, Arrival("stdio", "stdio"))
            sys.setprofile(steps)
            steps.is_counting = True
            return (await app.boundary.answer(frame, Arrival("stdio", "stdio"))).body
        finally:
            steps.is_counting = False
            sys.setprofile(None)
            steps.threads = {thread.name for thread in threading.enumerate()}
            await app.close()

    threading.setprofile(steps)
    try:
        answer = asyncio.run(serve())
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
    assert json.loads(answer or b"")["result"]["items"] == [*items, "message 1"]
    return steps


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Steps, Steps]:
    folder = tmp_path_factory.mktemp("payload")
    return steps_with(FEW, folder), steps_with(MANY, folder)


def test_ten_times_the_items_take_no_more_steps_of_python(measured: tuple[Steps, Steps]) -> None:
    few, many = measured
    added = many.functions - few.functions
    assert added.total() < 50, added.most_common(10)


def test_a_large_payload_is_encoded_no_oftener_than_it_was(measured: tuple[Steps, Steps]) -> None:
    few, many = measured
    assert (few.encodings, many.encodings) == (ENCODINGS, ENCODINGS)


def test_a_large_result_without_a_secret_is_finished_without_a_thread(measured: tuple[Steps, Steps]) -> None:
    # A thread costs more than it saves: its memory is its own, and is given back after each call.
    names = measured[0].threads | measured[1].threads
    assert [name for name in names if name.startswith("portbook-large-values")] == []


def test_large_and_small_answers_leave_in_turn_and_whole(tmp_path: Path) -> None:
    counts = [1, 4_000, 2, 0, 30_000, 3, 9_000]
    settings = load_settings(None, {}, {"audit.log_dir": tmp_path, "docs.enabled": False}, tmp_path)
    (incoming, to_door), (from_door, outgoing) = os.pipe(), os.pipe()
    greeting = compact({**CALL, "id": 0, "method": "initialize", "params": handshake("2025-11-25")})
    sent = [greeting]
    for number, count in enumerate(counts, 1):
        sent += frames("mcp", "echo", [number], items=['é " \n text'] * count)

    def send() -> None:
        with os.fdopen(to_door, "wb") as stream:
            stream.write(b"".join(frame + b"\n" for frame in sent))

    def receive() -> bytes:
        with os.fdopen(from_door, "rb") as stream:
            return stream.read()

    async def serve() -> bytes:
        app = assemble(settings, is_exposed=False, toolsets=(toolset(),), environ={})
        reader, writer = Reader(incoming), Writer(outgoing)
        door = NdjsonDoor(app.boundary, reader, writer, Arrival("stdio", "stdio"))
        sending = asyncio.create_task(asyncio.to_thread(send))
        receiving = asyncio.create_task(asyncio.to_thread(receive))
        await door.serve()
        for stream, descriptor in ((reader, incoming), (writer, outgoing)):
            stream.close()
            os.close(descriptor)
        await sending
        await app.close()
        return await receiving

    _, *answers = asyncio.run(serve()).splitlines()
    assert len(answers) == len(counts)
    for number, (count, line) in enumerate(zip(counts, answers, strict=True), 1):
        result = {"items": [*['é " \n text'] * count, f"message {number}"]}
        text = {"type": "text", "text": compact(result).decode()}
        told = {"content": [text], "structuredContent": result}
        assert line == compact({"jsonrpc": "2.0", "id": number, "result": told})


def compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(compact(CALL), id="compact"),
        pytest.param(json.dumps(CALL).encode(), id="with spaces and escapes"),
        pytest.param(json.dumps(CALL, separators=(",", ":")).encode(), id="with escapes"),
        pytest.param(
            compact({**CALL, "params": {"_meta": {}, **CALL["params"]}}), id="with more than the call"
        ),
        pytest.param(compact([CALL]), id="in a batch"),
        pytest.param(compact([{**CALL, "id": 2, "params": {"name": "echo"}}, CALL]), id="in a batch of two"),
    ],
)
def test_the_record_has_the_size_of_the_arguments_however_they_are_written(frame: bytes) -> None:
    async def records() -> list[Any]:
        client = AsyncTestClient(toolset())
        await client.send(compact({**CALL, "method": "initialize", "params": handshake("2025-03-26")}))
        await client.send(frame)
        return client.executions

    sizes = [record["input_bytes"] for record in asyncio.run(records())]
    assert sizes[-1] == len(compact(ARGUMENTS))
