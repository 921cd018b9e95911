"""Ships records to a collector of OpenTelemetry, over OTLP/HTTP with JSON.

A batch has arrived when the collector says so. What it refuses as invalid or too large is sent in parts; a
record that it refuses alone is left out and counted, so that it does not keep those after it.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from portbook.audit.shipping.otlp_logs import otlp_logs
from portbook.audit.shipping.ship_target import OtlpTarget
from portbook.audit.shipping.shipment import CannotShip, ShippedRecord
from portbook.net.destinations import Destinations, parse_url
from portbook.net.dial import NotPermitted, Unreachable, Untrusted
from portbook.net.http_client import HttpClient, HttpRequest
from portbook.net.http_connection import Broken, Response, TooLarge
from portbook.version import __version__

__all__ = ["OtlpReceiver"]

_OK: Final = range(200, 300)
# What is wrong with the batch itself, so that sending it again cannot help.
_REFUSED: Final = frozenset({400, 413})
_MAX_WAIT_S: Final = 300.0


class OtlpReceiver:
    """Sends logs to one collector."""

    def __init__(
        self,
        target: OtlpTarget,
        *,
        ca_file: Path | None = None,
        authorization: str | None = None,
        client: HttpClient | None = None,
    ) -> None:
        """Send to `target`; `authorization` is the value of that header."""
        parsed = parse_url(target.url)
        self._destination = parsed.destination
        self._target = f"{parsed.path or '/v1/logs'}{'?' + parsed.query if parsed.query else ''}"
        self._destinations = Destinations(own=[target.url])
        headers = ["Content-Type: application/json", "Accept-Encoding: identity", "User-Agent: portbook"]
        if authorization is not None:
            headers.append(f"Authorization: {authorization}")
        self._headers = "".join(f"{header}\r\n" for header in headers).encode("latin-1")
        self._ca_file = ca_file
        self._client = client or HttpClient()
        self._host = socket.gethostname()

    async def send(self, records: Sequence[ShippedRecord]) -> int:
        """Send records; return how many the collector refused for good.

        Raises `CannotShip` where it is not known that the others arrived.
        """
        response = await self._post(otlp_logs(records, self._host, __version__))
        if response.status in _OK:
            return _rejected(response.body)
        if response.status not in _REFUSED:
            asked = response.headers.get(b"retry-after", b"")
            wait_s = min(float(asked), _MAX_WAIT_S) if asked.isdigit() else 0.0
            raise CannotShip(f"the collector answers with status {response.status}", wait_s)
        if len(records) == 1:
            return 1
        middle = len(records) // 2
        return await self.send(records[:middle]) + await self.send(records[middle:])

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _post(self, body: bytes) -> Response:
        request = HttpRequest(
            self._destination,
            "POST",
            self._target,
            self._headers,
            body,
            is_idempotent=True,  # the collector can tell a repeated record by its number and hash
            ca_file=self._ca_file,
        )
        try:
            return await self._client.send(request, self._destinations)
        except (Broken, NotPermitted, TooLarge, Unreachable, Untrusted) as error:
            raise CannotShip(str(error)) from None


def _rejected(body: bytes) -> int:
    """Return how many records an answer says were rejected: they must not be sent again (OTLP)."""
    try:
        answer: Any = orjson.loads(body or b"{}")
        return int(answer["partialSuccess"]["rejectedLogRecords"])
    except (LookupError, TypeError, ValueError):  # it says nothing of the kind
        return 0
