"""A connection to a boundary in this process: frames in, answers out, records at hand."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from portbook.app.assemble import assemble
from portbook.audit.jsonl import MemorySink
from portbook.mcp.connection import McpConnection
from portbook.model import Arrival
from portbook.settings import load_settings
from portbook.wire.framing import LineSplitter
from support.portbook_process import SAMPLE_TOOLS

META = "io.modelcontextprotocol/"
STATELESS_META = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
EVERY_REVISION = (*HANDSHAKES, "2026-07-28")


class Connection:
    """Speaks to one connection, a message at a time."""

    def __init__(self, folder: Path, *, tools: Path = SAMPLE_TOOLS, **flags: Any) -> None:
        given = {"docs.enabled": False, "python.toolsets": (str(tools),), **flags}
        self.sink = MemorySink()
        self.warnings: list[str] = []
        self.emitted: list[bytes] = []
        assembled = assemble(
            load_settings(None, {}, given, folder),
            is_exposed=False,
            sink=self.sink,
            warn=self.warnings.append,
        )
        self.connection: McpConnection = assembled.boundary.connect(Arrival("test", "test"), self._emit)

    def _emit(self, message: bytes, is_wanted: Callable[[], bool], *, is_vital: bool = False) -> None:
        if is_wanted():
            self.emitted.append(message)

    def send(self, *frames: bytes) -> list[Any]:
        """Send lines; return the answers, parsed, those of notifications left out."""

        async def exchange() -> list[Any]:
            answers: list[Any] = []
            splitter = LineSplitter()
            lines = [line for frame in frames for line in splitter.feed(frame + b"\n")]
            for line in lines:
                answer = await self.connection.receive(line).answering
                if answer.body is not None and not answer.is_notification:
                    answers.append(json.loads(answer.body))
            return answers

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
