"""Records as logs of OpenTelemetry, in OTLP's JSON form. Pure: no I/O.

The body is the record as it is on disk, so that its hash can be checked; the attributes have its stream,
file, number and hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from portbook.audit.shipping.shipment import ShippedRecord
from portbook.canonical import json_bytes
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern

__all__ = ["otlp_logs"]

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
