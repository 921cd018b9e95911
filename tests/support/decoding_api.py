"""An HTTP API of the tests' own, on a common framework: it tells what the framework decoded of a request."""

from __future__ import annotations

import contextlib
import io
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from portbook.apis.arguments_put_into_request import Composed

__all__ = ["SECRET", "DecodedFile", "DecodedRequest", "DecodingApi", "decoded", "decoding_api"]

SECRET = "hunter2hunter2"


@dataclass(frozen=True)
class DecodedFile:
    name: str
    filename: str | None
    content_type: str
    data: bytes


@dataclass(frozen=True)
class DecodedRequest:
    """A request as bytes, and as the framework reads it."""

    method: str
    target: str
    """As it was on the wire, not decoded."""
    path: str
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes
    query: list[tuple[str, str]]
    cookies: list[tuple[str, str]]
    form: list[tuple[str, str]]
    files: list[DecodedFile]

    @staticmethod
    def of(environ: dict[str, Any]) -> DecodedRequest:
        with contextlib.closing(Request(environ)) as request:
            return DecodedRequest._read(request, environ)

    @staticmethod
    def _read(request: Request, environ: dict[str, Any]) -> DecodedRequest:
        body = request.get_data(cache=True, parse_form_data=False)
        files = [
            DecodedFile(name, file.filename, file.content_type, file.read())
            for name, file in request.files.items(multi=True)
        ]
        return DecodedRequest(
            request.method,
            environ.get("RAW_URI") or environ.get("REQUEST_URI", ""),
            request.path,
            {name.lower(): value for name, value in request.headers.items()},
            body,
            list(request.args.items(multi=True)),
            list(request.cookies.items(multi=True)),
            list(request.form.items(multi=True)),
            files,
        )


@dataclass
class DecodingApi:
    url: str
    asked: list[DecodedRequest] = field(default_factory=list)

    @property
    def last(self) -> DecodedRequest:
        return self.asked[-1]


def _answer(request: DecodedRequest) -> Response:
    """Return the status that the path names, with an error that holds a secret; otherwise 200."""
    first, _, rest = request.path.strip("/").partition("/")
    if first == "status":
        status = int(rest)
        error = {"error": "no such size", "field": "/size", "password": SECRET, "says": "canary-upstream"}
        return Response(json.dumps(error), status, content_type="application/problem+json")
    if first == "typed":  # the content type is in the path, the status and the Link headers in the query
        status = int(dict(request.query).get("status", "200"))
        response = Response(request.body, status, content_type=rest.partition("/")[2])
        for link in (value for name, value in request.query if name == "link"):
            response.headers.add("Link", link)
        return response
    if first == "moved":  # where to is in the query
        moved = Response("", 302)
        moved.autocorrect_location_header = False
        moved.headers["Location"] = dict(request.query)["to"]
        return moved
    return Response('{"ok":true}', 200, content_type="application/json")


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def decoding_api() -> Iterator[DecodingApi]:
    """Serve the API in a thread."""

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        request = DecodedRequest.of(environ)
        api.asked.append(request)
        return _answer(request)(environ, start_response)

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    api = DecodingApi(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def decoded(method: str, request: Composed) -> DecodedRequest:
    """Return what the framework reads of a request, without a connection."""
    path, _, query = request.target.partition("?")
    body = request.body or b""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "RAW_URI": request.target,
        "SERVER_NAME": "a.example",
        "SERVER_PORT": "80",
        "CONTENT_TYPE": request.content_type if body else "",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http",
        "HTTP_COOKIE": request.cookies,
    }
    for name, value in request.headers:
        environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
    return DecodedRequest.of(environ)
