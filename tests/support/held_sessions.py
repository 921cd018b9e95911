"""Sessions of one process over a server's store, with a clock to set."""

from __future__ import annotations

from typing import Any

from portbook.doors.http.mcp.sessions import Sessions
from portbook.model import Arrival
from support.in_process_connection import handshake
from support.mcp_http_client import Client

HERE = Arrival("http", "/mcp")


class Ticks:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Held:
    """Sessions of one process over a server's store, with a clock of our own."""

    def __init__(self, client: Client) -> None:
        self.ticks = Ticks()
        self.kept = client.served.sessions
        self.warnings: list[str] = []
        self.sessions = Sessions(client.served.boundary, self.kept, self.warnings.append, self.ticks)

    async def open(self, arrival: Arrival = HERE, **capabilities: Any) -> str:
        live = self.sessions.make(arrival)
        params = {**handshake("2025-11-25"), "capabilities": capabilities}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        live.connection.receive(_bytes(hello), arrival)
        await self.sessions.begin(live)
        return live.id


def _bytes(message: object) -> bytes:
    from portbook.canonical import json_bytes

    return json_bytes(message)
