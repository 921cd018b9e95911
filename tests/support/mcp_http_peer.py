"""The client of `mcp_peer`, over HTTP: a session at `/mcp` of a Portbook with an address."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.mcp_peer import HANDSHAKES, Peer, peer_of
from support.portbook_process import HttpServer, http_server

PeerOf = Callable[..., "contextlib.AbstractContextManager[Peer]"]


class HttpPeer(Peer):
    """One client; each message is a request of its own, in a thread of its own."""

    def __init__(self, server: HttpServer, revision: str, key: str | None = None) -> None:
        self._address = urlsplit(server.url)
        self._headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        super().__init__(server.process, revision)

    def open(self) -> None:
        """Wait for the first message: there is no connection before it."""

    def write(self, message: dict[str, Any]) -> None:
        headers = dict(self._headers)
        params = message.get("params", {})
        if "method" in message and message["method"] != "initialize":
            headers["MCP-Protocol-Version"] = self.revision
        if self.revision not in HANDSHAKES:
            headers["Mcp-Method"] = message["method"]
            named = next((params[name] for name in ("name", "uri", "taskId") if name in params), None)
            if named is not None:
                headers["Mcp-Name"] = named
        body = json.dumps({"jsonrpc": "2.0", **message})
        if message.get("method") == "initialize":
            self._exchange("POST", headers, body)  # what follows needs the session that it brings
        else:
            self._spawn("POST", headers, body)
        if message.get("method") == "notifications/initialized":
            self._spawn("GET", {**headers, "Accept": "text/event-stream"}, None)

    def end_session(self) -> None:
        """Say goodbye."""
        self._exchange("DELETE", self._headers, None)

    def _spawn(self, *request: Any) -> None:
        threading.Thread(target=self._exchange, args=request, daemon=True).start()

    def _exchange(self, method: str, headers: dict[str, str], body: str | None) -> None:
        """Send a request, and take every message of its response as it comes."""
        connection = http.client.HTTPConnection(str(self._address.hostname), self._address.port, timeout=60)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request(method, "/mcp", body, headers)
            response = connection.getresponse()
            if session := response.getheader("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = session
            if not (response.getheader("Content-Type") or "").startswith("text/event-stream"):
                if content := response.read():
                    self.lines.put(content)
                return
            for line in response:
                if line.startswith(b"data: ") and line[6:].strip():
                    self.lines.put(line[6:])


@contextlib.contextmanager
def http_peer_of(
    folder: Path, settings: str, revision: str = "2025-11-25", env: dict[str, str] | None = None
) -> Iterator[Peer]:
    """A client of a Portbook with these settings, over HTTP."""
    (folder / "portbook.toml").write_text(settings)
    log_dir = ("--log-dir", str(folder / "log"))
    with (
        (folder / "stderr").open("wb", buffering=0) as errors,
        http_server(*log_dir, cwd=folder, tools=(), env=env, stderr=errors) as server,
    ):
        yield HttpPeer(server, revision)


EVERY_DOOR: dict[str, PeerOf] = {"stdio": peer_of, "http": http_peer_of}
"""A client over each transport."""
