"""A collector of OTLP over real sockets."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256

import pytest

from portbook.audit.shipping.otlp import OtlpReceiver, otlp_logs
from portbook.audit.shipping.receiver_and_address import CannotShip, ShippedRecord, otlp_target
from portbook.model import JSON
from support.record_receivers import collector, reserved_port


def a_record(seq: int) -> ShippedRecord:
    text = f'{{"seq":{seq}'
    digest = sha256(f"{text}}}".encode()).hexdigest()
    return ShippedRecord("execution", "a.jsonl", seq, digest, f'{text},"hash":"{digest}"}}'.encode(), {})


RECORDS = [a_record(seq) for seq in range(1, 5)]


def test_records_arrive_with_the_authorization() -> None:
    async def scenario() -> None:
        with collector() as (url, received):
            receiver = OtlpReceiver(otlp_target(url), authorization="Bearer abc")
            assert await receiver.send(RECORDS) == 0
            await receiver.close()
        assert received.wait_for(4) == [record.line for record in RECORDS]
        assert received.headers[0]["authorization"] == "Bearer abc"
        assert received.headers[0]["content-type"] == "application/json"

    asyncio.run(scenario())


def test_what_the_collector_refuses_alone_does_not_keep_the_others() -> None:
    async def scenario() -> None:
        # The whole, the first half, and the first record of it.
        with collector(statuses=[413, 400, 400]) as (url, received):
            receiver = OtlpReceiver(otlp_target(url))
            assert await receiver.send(RECORDS) == 1
            await receiver.close()
        assert received.wait_for(3) == [record.line for record in RECORDS[1:]]

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_any_other_status_means_to_try_again(status: int) -> None:
    async def scenario() -> None:
        with collector(statuses=[status]) as (url, _):
            receiver = OtlpReceiver(otlp_target(url))
            with pytest.raises(CannotShip, match=f"status {status}"):
                await receiver.send(RECORDS)
            assert await receiver.send(RECORDS) == 0
            await receiver.close()

    asyncio.run(scenario())


def test_a_collector_that_is_away_is_told() -> None:
    async def scenario() -> None:
        with reserved_port() as port:
            receiver = OtlpReceiver(otlp_target(f"http://127.0.0.1:{port}/v1/logs"))
            with pytest.raises(CannotShip):
                await receiver.send(RECORDS)
            await receiver.close()

    asyncio.run(scenario())


# Records as logs of OpenTelemetry.


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
