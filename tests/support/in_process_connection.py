"""A connection to a boundary in this process: frames in, answers out, records at hand."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from support.portbook_process import SAMPLE_TOOLS

META = "io.modelcontextprotocol/"
STATELESS_META = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
EVERY_REVISION = (*HANDSHAKES, "2026-07-28")


class Connection:
    """Speaks to one connection, a message at a time."""

    def __init__(self, *, tools: Path = SAMPLE_TOOLS, **settings: Any) -> None:
        # Not above: clients in processes of their own want only what is beside this class.
        from portbook.testing import AsyncTestClient

        self.client = AsyncTestClient(tools, settings=settings)
        self.sink = self.client._world.log

    def send(self, *frames: bytes) -> list[Any]:
        """Send lines; return the answers, parsed, those of notifications left out."""
        import asyncio  # likewise

        from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES

        async def exchange() -> list[Any]:
            lines = [line for frame in frames for line in frame.split(b"\n")]
            meant = [line for line in lines if line.strip(b" \t\r") or len(line) > MAX_FRAME_BYTES]
            answers = [await self.client.send(line) for line in meant]
            return [answer for answer in answers if answer is not None]

        return asyncio.run(exchange())

    def ask(self, message: object) -> Any:
        """Send one message; return its answer, or None."""
        answers = self.send(json.dumps(message).encode())
        return answers[0] if answers else None

    def request(self, method: str, params: object = ..., *, id: object = 1) -> Any:
        message: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method}
        return self.ask(message if params is ... else {**message, "params": params})

    def open(self, revision: str) -> Connection:
        """Do the handshake of a revision that has one."""
        if revision in HANDSHAKES:
            answer = self.request("initialize", handshake(revision), id="init")
            assert answer["result"]["protocolVersion"] == revision
            assert self.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
        return self


def handshake(revision: str) -> dict[str, object]:
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


def params(revision: str, **given: object) -> dict[str, object]:
    """Params as a revision wants them: in the stateless one each request says who it is."""
    return (
        given if revision in HANDSHAKES else {**given, "_meta": {**STATELESS_META, **given.get("_meta", {})}}
    )  # type: ignore[dict-item]


def frame_of(row: dict[str, Any]) -> bytes:
    """The bytes of one row of the corpus of hostile frames."""
    if "frame_b64" in row:
        return base64.b64decode(row["frame_b64"])
    made = row["gen"]
    parts = [base64.b64decode(made.get(f"{name}_b64", "")) for name in ("pre", "unit", "mid", "unit2", "suf")]
    pre, unit, mid, unit2, suf = parts
    return pre + unit * made.get("count", 0) + mid + unit2 * made.get("count2", 0) + suf
