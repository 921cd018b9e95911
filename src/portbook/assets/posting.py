"""One POST over HTTP, under one deadline for everything.

The narrow door to whatever client does it: bytes to an address, a status and a body back, or `Unreachable`.
No redirect is followed, no proxy is used, nothing is tried twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

__all__ = ["Post", "Reply", "Unreachable", "post"]

# More than an answer to a POST has any reason to be.
_MAX_BODY: Final = 65_536
_CHUNK: Final = 8_192


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes


class Unreachable(Exception):
    """Nothing came back that is HTTP, or not in time."""


# Sends a body with headers to an address, within so many seconds.
Post: TypeAlias = "Callable[[str, bytes, Mapping[str, str], float], Reply]"


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Reply:
    """Send `body` to `url`; return what came back.

    Raises `Unreachable` where nothing did within `timeout_s`, all steps together.
    """
    box: SimpleQueue[Reply | Exception] = SimpleQueue()
    deadline = time.monotonic() + timeout_s

    def work() -> None:
        try:
            box.put(_exchange(url, body, headers, deadline))
        except Exception as error:  # noqa: BLE001 - handed over to the caller
            box.put(error)

    # Names are looked up, and headers read, without regard to any deadline: only a thread can be left.
    threading.Thread(target=work, name="portbook-post", daemon=True).start()
    try:
        outcome = box.get(timeout=timeout_s)
    except Empty:
        raise Unreachable from None
    if isinstance(outcome, Exception):
        raise Unreachable from outcome
    return outcome


def _exchange(url: str, body: bytes, headers: Mapping[str, str], deadline: float) -> Reply:
    from http.client import HTTPConnection, HTTPSConnection  # 30 ms, and most servers send nothing

    parts = urlsplit(url)
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = make(parts.hostname or "", parts.port, timeout=max(deadline - time.monotonic(), 0.001))
    try:
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("POST", target, body, dict(headers))
        response = connection.getresponse()
        data = bytearray()
        while len(data) < _MAX_BODY and time.monotonic() < deadline and (chunk := response.read1(_CHUNK)):
            data += chunk
        return Reply(response.status, bytes(data))
    finally:
        connection.close()
