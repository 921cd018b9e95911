"""An API that stops in the middle: the caller learns how far it came."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.portbook_process import run

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"

SETTINGS = """
[http.slow]
base_url = "http://127.0.0.1:{port}"
retries = 0
[http.slow.tools.get]
method = "GET"
path = "/"
timeout_ms = 1000
"""


@contextlib.contextmanager
def api_that_sends(part: bytes) -> Iterator[int]:
    """Return the port of an API that sends this much to every request, and then nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as held:

        def answer() -> None:
            with contextlib.suppress(OSError):  # the listener was closed
                while True:
                    connection = held.enter_context(listener.accept()[0])
                    connection.recv(65_536)
                    connection.sendall(part)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    ("part", "happened"),
    [
        (b"", "no answer arrived in time"),
        (HEAD[:9], "an answer began, and did not end in time"),
        (HEAD + b"\r\n", "an answer began, and did not end in time"),
        (HEAD + b'\r\n{"half":', "an answer began, and did not end in time"),
    ],
    ids=["nothing", "half a line", "a head", "half a body"],
)
def test_a_caller_learns_how_far_an_answer_came(part: bytes, happened: str, tmp_path: Path) -> None:
    with api_that_sends(part) as port:
        (tmp_path / "portbook.toml").write_text(SETTINGS.format(port=port))
        done = run("call", "slow.get", cwd=tmp_path)
    assert done.code != 0
    assert happened in done.err
    assert any(happened in record.read_text() for record in tmp_path.rglob("2*.jsonl"))
