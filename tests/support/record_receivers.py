"""Receivers of shipped records on loopback: syslog over every transport, and a collector of OTLP."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE_S = 60

MESSAGE = re.compile(
    rb"<(?P<priority>\d+)>1 (?P<time>\S+) (?P<host>\S+) portbook (?P<run>\S+) (?P<stream>\S+) "
    rb'\[portbook@32473 stream="(?P<said>\w+)" file="(?P<file>[^"]+)" seq="(?P<seq>\d+)" '
    rb'hash="(?P<hash>\w{64})"(?: omitted="\d+")?\](?: (?P<line>.*))?',
    re.DOTALL,
)


class Received:
    """The records that arrived, in the order in which they came."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, int, bytes]] = []
        """Stream, file, number and bytes."""
        self.headers: list[dict[str, str]] = []
        self.came = threading.Condition()

    def take(self, stream: str, file: str, seq: int, line: bytes, digest: str) -> None:
        if line:
            assert sha256(line.rpartition(b',"hash"')[0] + b"}").hexdigest() == digest
        with self.came:
            self.lines.append((stream, file, seq, line))
            self.came.notify_all()

    def wait_for(self, count: int, stream: str = "execution") -> list[bytes]:
        """The records of a stream in their order, each once, when there are as many."""
        with self.came:
            assert self.came.wait_for(lambda: len(self._of(stream)) >= count, PATIENCE_S), self.lines
            return [line for _, line in sorted(self._of(stream).items())]

    def _of(self, stream: str) -> dict[tuple[str, int], bytes]:
        return {(file, seq): line for found, file, seq, line in self.lines if found == stream}

    def read_message(self, message: bytes) -> None:
        found = MESSAGE.fullmatch(message)
        assert found is not None, message
        assert found["said"] == found["stream"]
        stream, file, digest = (found[name].decode() for name in ("stream", "file", "hash"))
        self.take(stream, file, int(found["seq"]), found["line"] or b"", digest)

    def read_logs(self, body: bytes) -> None:
        for resource in json.loads(body)["resourceLogs"]:
            for scope in resource["scopeLogs"]:
                for log in scope["logRecords"]:
                    about: dict[str, Any] = {each["key"]: each["value"] for each in log["attributes"]}
                    self.take(
                        about["portbook.stream"]["stringValue"],
                        about["portbook.file"]["stringValue"],
                        int(about["portbook.seq"]["intValue"]),
                        log["body"]["stringValue"].encode(),
                        about["portbook.hash"]["stringValue"],
                    )


@contextlib.contextmanager
def collector(port: int = 0, statuses: list[int] | None = None) -> Iterator[tuple[str, Received]]:
    """A collector of OTLP; the first answers have these statuses."""
    received, wanted = Received(), statuses or []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.headers.append({name.lower(): value for name, value in self.headers.items()})
            status = wanted.pop(0) if wanted else 200
            if status == 200:
                received.read_logs(body)
            self.send_response(status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    with _running(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/logs", received


class _Framed(socketserver.StreamRequestHandler):
    """Reads messages that their length begins."""

    def handle(self) -> None:
        received: Received = self.server.received  # type: ignore[attr-defined]
        while length := self._length():
            received.read_message(self.rfile.read(length))

    def _length(self) -> int:
        digits = b""
        while (digit := self.rfile.read(1)).isdigit():
            digits += digit
        assert digit in (b" ", b""), digit
        return int(digits or b"0")


class _Stream(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    context: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        accepted, address = super().get_request()
        return (accepted if self.context is None else self.context.wrap_socket(accepted, True)), address


class _UnixStream(_Stream):
    address_family = socket.AF_UNIX


@contextlib.contextmanager
def syslog_stream(
    port: int = 0, *, path: Path | None = None, context: ssl.SSLContext | None = None
) -> Iterator[tuple[str, Received]]:
    """A receiver over TCP, TLS or a Unix socket."""
    if path is not None:
        server: _Stream = _UnixStream(str(path), _Framed)  # type: ignore[arg-type]
        address = f"unix:{path}"
    else:
        server = _Stream(("127.0.0.1", port), _Framed)
        server.context = context
        address = f"{'tcp' if context is None else 'tls'}://127.0.0.1:{server.server_address[1]}"
    server.received = Received()  # type: ignore[attr-defined]
    with _running(server):
        yield address, server.received  # type: ignore[attr-defined]


@contextlib.contextmanager
def syslog_datagrams(path: Path | None = None) -> Iterator[tuple[str, Received]]:
    """A receiver over UDP, or Unix datagrams."""
    received = Received()
    opened = socket.socket(socket.AF_INET if path is None else socket.AF_UNIX, socket.SOCK_DGRAM)
    opened.bind(("127.0.0.1", 0) if path is None else str(path))
    address = f"unix:{path}" if path else f"udp://127.0.0.1:{opened.getsockname()[1]}"

    def read() -> None:
        while message := opened.recv(1 << 17):
            received.read_message(message)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield address, received
    finally:
        with socket.socket(opened.family, socket.SOCK_DGRAM) as last:  # an empty message ends the reader
            last.sendto(b"", opened.getsockname())
        reader.join(PATIENCE_S)
        opened.close()


@contextlib.contextmanager
def silent_receiver() -> Iterator[int]:
    """A port where connections are accepted, and nothing is read or answered."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield listening.getsockname()[1]


@contextlib.contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
