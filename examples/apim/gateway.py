"""A small API behind a gateway, on this machine: it plays Azure API Management, on good days and bad ones.

    python gateway.py [--port 9000] [--key-file subscription.key]

Every request needs the subscription key, except for `/_seen`, which tells what came in. Beside the orders
there are paths for each way in which a real gateway disappoints: late, busy, broken, elsewhere, or never.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

ORDERS: dict[str, dict[str, Any]] = {
    "A-1001": {"id": "A-1001", "customer": "Ada", "cents": 1990, "state": "open"},
    "A-1002": {"id": "A-1002", "customer": "Grace", "cents": 250000, "state": "sent"},
}
LATE_S = 0.2
SHOWN_HEADERS = (
    "x-request-id",
    "x-trace-id",
    "x-correlation-id",
    "x-session-id",
    "traceparent",
    "authorization",
)

Answer: TypeAlias = tuple[HTTPStatus, Any, tuple[tuple[str, str], ...]]
NOT_FOUND: Answer = (HTTPStatus.NOT_FOUND, {"statusCode": 404, "message": "Resource not found"}, ())
BAD_DAYS: dict[str, Answer] = {
    "broken": (HTTPStatus.INTERNAL_SERVER_ERROR, {"statusCode": 500, "message": "secret: hunter2"}, ()),
    "busy": (HTTPStatus.TOO_MANY_REQUESTS, {"statusCode": 429}, (("Retry-After", "30"),)),
    "moved": (HTTPStatus.FOUND, None, (("Location", "/orders/A-1001"),)),
    "elsewhere": (HTTPStatus.FOUND, None, (("Location", "http://169.254.169.254/latest/meta-data/"),)),
    "large": (HTTPStatus.OK, {"text": "x" * 3_000_000}, ()),
    "page": (HTTPStatus.OK, "<html></html>", (("Content-Type", "text/html"),)),
}


class Gateway(ThreadingHTTPServer):
    """The server, and what it remembers."""

    daemon_threads = True

    def __init__(self, port: int, key: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.key = key
        self.seen: list[dict[str, Any]] = []
        self.tries: Counter[str] = Counter()
        self.closing = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: Gateway  # pyright: ignore[reportIncompatibleVariableOverride] # never another one

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def do_DELETE(self) -> None:
        self.answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is its parent's
        """Say nothing: standard error is for what goes wrong."""

    def answer(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if url.path == "/_seen":
            self.say(HTTPStatus.OK, self.server.seen)
            return
        self.server.seen.append(
            {
                "method": self.command,
                "path": self.path,
                "body": body.decode("utf-8", "replace"),
                "headers": {name: self.headers[name] for name in SHOWN_HEADERS if name in self.headers},
            }
        )
        if self.headers.get("Ocp-Apim-Subscription-Key") != self.server.key:
            words = "Access denied due to missing or invalid subscription key."
            self.say(HTTPStatus.UNAUTHORIZED, {"statusCode": 401, "message": words})
            return
        self.route([unquote(part) for part in url.path.split("/")[1:]], parse_qs(url.query), body)

    def route(self, path: list[str], query: dict[str, list[str]], body: bytes) -> None:
        match [self.command, *path]:
            case ["GET", "orders"]:
                wanted = query.get("state", [])
                found = [order for order in ORDERS.values() if not wanted or order["state"] in wanted]
                self.say(HTTPStatus.OK, {"orders": found})
            case ["GET", "orders", name] if name in ORDERS:
                self.say(HTTPStatus.OK, ORDERS[name])
            case ["DELETE", "orders", name] if name in ORDERS:
                self.say(HTTPStatus.NO_CONTENT)
            case ["POST", "refunds"]:
                asked = json.loads(body)
                self.say(
                    HTTPStatus.CREATED, {"order": asked["order"], "cents": asked["cents"], "refunded": True}
                )
            case [_, "bad-days", kind]:
                self.disappoint(kind)
            case _:
                self.say(*NOT_FOUND[:2])

    def disappoint(self, kind: str) -> None:
        match kind:
            case "late":
                self.server.closing.wait(LATE_S)
                self.say(HTTPStatus.OK, {"late": True})
            case "flaky":  # broken the first time that a call comes, well the second time
                request = self.headers.get("X-Request-ID", "")
                self.server.tries[request] += 1
                is_well = self.server.tries[request] > 1
                self.say(HTTPStatus.OK if is_well else HTTPStatus.INTERNAL_SERVER_ERROR, {"tries": 2})
            case "cut":
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.close_connection = True
            case "never":
                self.server.closing.wait()
                self.close_connection = True
            case _:
                status, value, headers = BAD_DAYS.get(kind, NOT_FOUND)
                self.say(status, value, *headers)

    def say(self, status: HTTPStatus, value: Any = None, *headers: tuple[str, str]) -> None:
        body = b"" if value is None else json.dumps(value, separators=(",", ":")).encode()
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        if body and "Content-Type" not in dict(headers):
            self.send_header("Content-Type", "application/json")
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser(description="An API gateway to try Portbook with.")
    parser.add_argument("--port", type=int, default=9000, help="0 takes a free one")
    parser.add_argument("--key-file", type=Path, default=Path(__file__).with_name("subscription.key"))
    options = parser.parse_args()
    gateway = Gateway(options.port, options.key_file.read_text("utf-8").strip())
    print(f"gateway on http://127.0.0.1:{gateway.server_port}", flush=True)
    try:
        gateway.serve_forever(0.05)
    except KeyboardInterrupt:
        pass
    finally:
        gateway.closing.set()
        gateway.server_close()


if __name__ == "__main__":
    main()
