"""Records as logs of OpenTelemetry."""

from __future__ import annotations

import json

import pytest

from portbook.audit.shipping.otlp_logs import otlp_logs
from portbook.audit.shipping.shipment import ShippedRecord
from portbook.model import JSON

TRACE = "a683db31fa194979a267e43d2dc1e81f"
RECORD = ShippedRecord(
    *("intent", "a.jsonl", 9_007_199_254_740_993, "ab" * 32, b'{"seq":1}'),
    {"timestamp": "2026-01-01T00:00:01.250Z", "status_code": 500, "trace_id": TRACE},
)


def test_a_record_is_a_log_with_its_number_and_hash_as_attributes() -> None:
    sent = json.loads(otlp_logs([RECORD], "node-1", "1.2.3"))
    (resource,) = sent["resourceLogs"]
    assert resource["resource"]["attributes"] == [
        {"key": "service.name", "value": {"stringValue": "portbook"}},
        {"key": "service.version", "value": {"stringValue": "1.2.3"}},
        {"key": "host.name", "value": {"stringValue": "node-1"}},
    ]
    (scope,) = resource["scopeLogs"]
    assert scope["scope"] == {"name": "portbook.audit", "version": "1.2.3"}
    assert scope["logRecords"] == [
        {
            "timeUnixNano": "1767225601250000000",
            "severityNumber": 13,
            "severityText": "WARN",
            "eventName": "portbook.intent",
            "body": {"stringValue": '{"seq":1}'},
            "attributes": [
                {"key": "portbook.stream", "value": {"stringValue": "intent"}},
                {"key": "portbook.file", "value": {"stringValue": "a.jsonl"}},
                {"key": "portbook.seq", "value": {"intValue": "9007199254740993"}},
                {"key": "portbook.hash", "value": {"stringValue": "ab" * 32}},
            ],
            "traceId": TRACE,
        }
    ]


@pytest.mark.parametrize("trace", [None, "0" * 32, "my trace", TRACE.upper(), 7])
def test_a_trace_that_is_none_of_w3c_is_left_out(trace: JSON) -> None:
    record = RECORD._replace(fields={"trace_id": trace})
    (resource,) = json.loads(otlp_logs([record], "h", "1"))["resourceLogs"]
    (log,) = resource["scopeLogs"][0]["logRecords"]
    assert "traceId" not in log
    assert log["timeUnixNano"] == "0"
    assert log["severityText"] == "INFO"
