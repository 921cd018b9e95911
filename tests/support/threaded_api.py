"""An HTTP API of the tests' own: it answers, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Upstream:
    port: int
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of every request."""
    headers: list[dict[str, str]] = field(default_factory=list)


@contextlib.contextmanager
def upstream() -> Iterator[Upstream]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            given = self.rfile.read(length)
            api.seen.append((self.command, self.path))
            api.headers.append({name.lower(): value for name, value in self.headers.items()})
            said = {
                "id": "1",
                "path": self.path,
                "given": given.decode(),
                "heard": list(self.headers.values()),
            }
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = do_PUT = answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api = Upstream(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
