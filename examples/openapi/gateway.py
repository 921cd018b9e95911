"""The API that `shop.json` describes, on this machine.

    python gateway.py [--port 9000]

It checks the two credentials that its document requires, and says what is missing.
"""

from __future__ import annotations

import argparse
import base64
import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

APP_KEY = "shop-app-key-1"
ACCOUNT = "Basic " + base64.b64encode(b"ada:shop-password-1").decode()
ORDERS = {"A-1001": {"id": "A-1001", "cents": 1990}, "A-1002": {"id": "A-1002", "cents": 250000}}


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        status, body = self.answer(unquote(url.path), parse_qs(url.query))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[HTTPStatus, Any]:
        """Return the status and the body for a request."""
        if path == "/v1/stock":
            return HTTPStatus.OK, {"pens": 7}
        if query.get("app_key") != [APP_KEY] or self.headers.get("Authorization") != ACCOUNT:
            return HTTPStatus.UNAUTHORIZED, {"message": "app_key and account are needed"}
        order = ORDERS.get(path.removeprefix("/v1/orders/"))
        return (HTTPStatus.NOT_FOUND, {}) if order is None else (HTTPStatus.OK, order)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"the shop is at http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
