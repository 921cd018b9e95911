"""A collector of OTLP over real sockets."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from portbook.audit.shipping.otlp_receiver import OtlpReceiver
from portbook.audit.shipping.ship_target import otlp_target
from portbook.audit.shipping.shipment import CannotShip, ShippedRecord
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
