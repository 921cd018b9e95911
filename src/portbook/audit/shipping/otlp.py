"""Ships records to a collector of OpenTelemetry, over OTLP/HTTP with JSON.

A batch has arrived when the collector says so. What it refuses as invalid or too large is sent in parts; a
record that it refuses alone is left out and counted, so that it does not keep those after it.

The body of a log is the record as it is on disk, so that its hash can be checked; the attributes have its
stream, file, number and hash.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from portbook.audit.shipping.receiver_and_address import CannotShip, OtlpTarget, ShippedRecord
from portbook.canonical import json_bytes
from portbook.model import JSON, JSONObject
from portbook.net.destinations import Destinations, parse_url
from portbook.net.dns_and_dial import NotPermitted, Unreachable, Untrusted
from portbook.net.http_client import HttpClient, HttpRequest
from portbook.net.http_connection import Broken, Response, TooLarge
from portbook.text.late_pattern import late_pattern
from portbook.version import __version__

__all__ = ["OtlpReceiver", "otlp_logs"]

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


# Logs of OpenTelemetry.

_INFO, _WARN = 9, 13
_BAD_STATUS: Final = 400
_TRACE: Final = late_pattern(r"(?!0{32})[0-9a-f]{32}")


def otlp_logs(records: Sequence[ShippedRecord], host: str, version: str) -> bytes:
    """Return the body of a request that exports records, written on `host`."""
    resource = (("service.name", "portbook"), ("service.version", version), ("host.name", host))
    attributes: list[JSON] = [_text(*each) for each in resource]
    logs: list[JSON] = [_log(record) for record in records]
    scope: JSONObject = {"scope": {"name": "portbook.audit", "version": version}, "logRecords": logs}
    return json_bytes({"resourceLogs": [{"resource": {"attributes": attributes}, "scopeLogs": [scope]}]})


def _log(record: ShippedRecord) -> JSONObject:
    status, trace = record.fields.get("status_code"), record.fields.get("trace_id")
    is_bad = isinstance(status, int) and status >= _BAD_STATUS
    log: JSONObject = {
        "timeUnixNano": _nanoseconds(record.fields.get("timestamp")),
        "severityNumber": _WARN if is_bad else _INFO,
        "severityText": "WARN" if is_bad else "INFO",
        "eventName": f"portbook.{record.stream}",
        "body": {"stringValue": record.line.decode(errors="replace")},
        "attributes": [
            _text("portbook.stream", record.stream),
            _text("portbook.file", record.file),
            {"key": "portbook.seq", "value": {"intValue": str(record.seq)}},
            _text("portbook.hash", record.hash),
        ],
    }
    if isinstance(trace, str) and _TRACE.fullmatch(trace):
        log["traceId"] = trace
    return log


def _text(key: str, value: str) -> JSONObject:
    return {"key": key, "value": {"stringValue": value}}


def _nanoseconds(at: JSON) -> str:
    """Return a time as OTLP writes it; 0 stands for an unknown one."""
    try:
        seconds = datetime.fromisoformat(str(at)).timestamp()
    except ValueError:
        return "0"
    return str(round(seconds * 1000) * 1_000_000)
