"""An HTTP server of the tests' own that serves what a test puts into it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["FileServer", "file_server"]


@dataclass
class FileServer:
    port: int
    files: dict[str, bytes | str] = field(default_factory=dict[str, "bytes | str"])
    """What each path has: bytes, or the address to which it redirects."""
    asked: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def file_server() -> Iterator[FileServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.path)
            found = server.files.get(self.path)
            if isinstance(found, str):
                self.send_response(302)
                self.send_header("location", found)
                body = b""
            else:
                self.send_response(404 if found is None else 200)
                body = found or b""
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server = FileServer(listening.server_address[1])
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
