"""Syslog over real sockets: what arrives, and what is known where it does not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import pytest

from portbook.audit.shipping.receiver_and_address import CannotShip, ShippedRecord, syslog_target
from portbook.audit.shipping.syslog import SyslogReceiver, framed, syslog_message
from support.certificates import certificates  # noqa: F401 - a fixture
from support.record_receivers import Received, reserved_port, silent_receiver, syslog_datagrams, syslog_stream
from support.scripted_api import Certificates


def a_record(seq: int, padding: int = 0) -> ShippedRecord:
    text = f'{{"seq":{seq},"p":"{"x" * padding}"'
    digest = sha256(f"{text}}}".encode()).hexdigest()
    return ShippedRecord("execution", "a.jsonl", seq, digest, f'{text},"hash":"{digest}"}}'.encode(), {})


RECORDS = [a_record(seq, padding) for seq, padding in ((1, 0), (2, 30_000), (3, 1))]

Opened = AbstractContextManager[tuple[str, Received]]


@pytest.fixture(params=["tcp", "tls", "udp", "unix stream", "unix datagrams"])
def opened(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    certificates: Certificates,  # noqa: F811 - the fixture
) -> Iterator[tuple[str, Received]]:
    opens: dict[str, Callable[[], Opened]] = {
        "tcp": syslog_stream,
        "tls": lambda: syslog_stream(context=certificates.server),
        "udp": syslog_datagrams,
        "unix stream": lambda: syslog_stream(path=tmp_path / "log"),
        "unix datagrams": lambda: syslog_datagrams(tmp_path / "log"),
    }
    with opens[request.param]() as found:
        yield found


def test_records_arrive_over_every_transport(
    opened: tuple[str, Received],
    certificates: Certificates,  # noqa: F811 - the fixture
) -> None:
    address, received = opened

    async def scenario() -> None:
        receiver = SyslogReceiver(syslog_target(address), certificates.ca_file)
        assert await receiver.send(RECORDS[:2]) == 0
        assert await receiver.send(RECORDS[2:]) == 0
        await receiver.close()

    asyncio.run(scenario())
    assert received.wait_for(3) == [record.line for record in RECORDS]


def test_a_certificate_that_is_not_trusted_is_told() -> None:
    async def scenario() -> None:
        with syslog_stream() as (address, _):  # which does not speak TLS at all
            receiver = SyslogReceiver(syslog_target(address.replace("tcp", "tls")))
            with pytest.raises(CannotShip):
                await asyncio.wait_for(receiver.send(RECORDS), 60)

    asyncio.run(scenario())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{port}", "unix:{folder}/log"])
def test_a_receiver_that_is_away_is_told_and_found_once_it_is_there(tmp_path: Path, address: str) -> None:

    async def scenario(port: int) -> None:
        receiver = SyslogReceiver(syslog_target(address.format(port=port, folder=tmp_path)))
        with pytest.raises(CannotShip, match=r"refused|Connect|No such file"):
            await receiver.send(RECORDS)
        path = tmp_path / "log" if "unix" in address else None
        with syslog_stream(port, path=path) as (_, received):
            await receiver.send(RECORDS)
            assert len(await asyncio.to_thread(received.wait_for, 3)) == 3
            await receiver.close()

    with reserved_port() as port:
        asyncio.run(scenario(port))


def test_a_receiver_that_reads_nothing_is_not_taken_for_one_that_has_it() -> None:
    """However large the buffers are, what the receiver's machine has not acknowledged has not arrived."""

    async def scenario() -> None:
        with reserved_port() as port, silent_receiver(port):
            receiver = SyslogReceiver(syslog_target(f"tcp://127.0.0.1:{port}"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await receiver.send([a_record(1, 4_000_000)])

    asyncio.run(scenario())


def test_a_batch_sent_to_a_receiver_that_has_closed_does_not_count_as_arrived() -> None:
    async def scenario(port: int) -> None:
        receiver = SyslogReceiver(syslog_target(f"tcp://127.0.0.1:{port}"))
        with socket.create_server(("127.0.0.1", port)) as listening:
            sending = asyncio.create_task(receiver.send([a_record(1, 4_000_000)]))
            accepted, _ = await asyncio.to_thread(listening.accept)
            accepted.close()  # with bytes unread: a reset
            with pytest.raises(CannotShip):
                await sending
        with syslog_stream(port) as (_, received):
            await receiver.send(RECORDS)
            assert len(await asyncio.to_thread(received.wait_for, 3)) == 3
            await receiver.close()

    with reserved_port() as port:
        asyncio.run(scenario(port))


# Records as syslog messages.


LINE = '{"seq":7,"tool_id":"mcp.tool:grüße","hash":"ab"}'.encode()
RECORD = ShippedRecord(
    *("execution", "2026-01-01T00-00-00.000Z.0123abcd.jsonl", 7, "ab" * 32, LINE),
    {"timestamp": "2026-01-01T00:00:01.000Z", "status_code": 200},
)


def test_a_record_is_a_message_with_its_number_and_hash_as_structured_data() -> None:
    assert syslog_message(RECORD, "node-1") == (
        b"<110>1 2026-01-01T00:00:01.000Z node-1 portbook 0123abcd execution "
        b'[portbook@32473 stream="execution" file="2026-01-01T00-00-00.000Z.0123abcd.jsonl" seq="7" hash="'
        + b"ab" * 32
        + b'"] '
        + LINE
    )


@pytest.mark.parametrize(("status", "priority"), [(200, b"<110>"), (403, b"<108>"), (None, b"<110>")])
def test_a_call_that_failed_is_a_warning(status: int | None, priority: bytes) -> None:
    record = RECORD._replace(fields={**RECORD.fields, "status_code": status})
    assert syslog_message(record, "node-1").startswith(priority)


def test_what_a_header_cannot_hold_is_not_in_it() -> None:
    record = RECORD._replace(fields={"timestamp": "not a time"}, file='a"b]c\\d.jsonl')
    message = syslog_message(record, "host name\n<1>")
    assert message.startswith(b"<110>1 - host_name_<1> portbook ")
    assert b'file="a\\"b\\]c\\\\d.jsonl"' in message


def test_a_record_that_fits_in_no_datagram_is_announced_without_its_text() -> None:
    assert len(syslog_message(RECORD, "node-1", 300)) > len(LINE)
    short = syslog_message(RECORD, "node-1", 200)
    assert LINE not in short
    assert short.endswith(b'" omitted="%d"]' % len(LINE))


def test_in_a_stream_the_length_in_bytes_comes_first() -> None:
    assert framed("grüße".encode()) == b"7 " + "grüße".encode()
