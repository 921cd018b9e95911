"""A backend for the tests, as a process of its own: what it answers is chosen by the path of the POST.

It prints its port. `GET /seen` lists the requests so far; `/wait` answers once somebody GETs `/go`.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWERS: dict[str, tuple[int, str, bytes]] = {
    "/synesthetic-assets/": (201, "application/json", b'{"id":"a-1"}'),
    "/number": (200, "application/json", b'{"synesthetic_asset_id":17}'),
    "/nothing": (204, "text/plain", b""),
    "/nameless": (200, "application/json", b'{"stored":true}'),
    "/blank-name": (200, "application/json", b'{"id":"  ","asset_id":"\\n\\t","synesthetic_asset_id":""}'),
    "/unseen-name": (200, "application/json", b'{"id":"\\u200b\\u00a0\\u0007"}'),
    "/empty-name": (200, "application/json", b'{"id":"","asset_id":null,"synesthetic_asset_id":true}'),
    "/huge": (201, "application/json", b'{"id":"' + b"x" * 1_048_576 + b'"}'),
    "/refused": (400, "application/json", b'{"detail":"name is taken"}'),
    "/line": (422, "text/plain", b"tempo is missing\n"),
    "/silent": (400, "text/plain", b""),
    "/broken": (500, "text/plain", b""),
    "/trace": (500, "text/plain", b"Traceback:\n  File x\nSecret: hunter2"),
    "/page": (503, "text/html", b"<html>down</html>"),
    "/long": (400, "text/plain", b"x" * 1000),
    "/odd": (599, "text/plain", b""),
    "/moved": (302, "text/plain", b""),
    "/portal": (200, "text/html", b"<html>log in first</html>"),
    "/list": (200, "application/json", b"[1]"),
}

seen: list[dict[str, Any]] = []
go = threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/go":
            go.set()
        self._answer(200, "application/json", json.dumps(seen).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen.append({"path": self.path, "headers": headers, "body": json.loads(body)})
        if self.path == "/garbage":
            self.wfile.write(b"\x00\x01 this is not HTTP\r\n\r\n")
            self.close_connection = True
        elif self.path == "/hang":
            threading.Event().wait(60)
        elif self.path == "/drip":
            self._drip()
        elif self.path == "/wait":
            go.wait(60)
            self._answer(201, "application/json", b'{"id":"waited"}')
        else:
            self._answer(*ANSWERS[self.path])

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        while not go.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if status == 302:
            self.send_header("location", "/synesthetic-assets/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
