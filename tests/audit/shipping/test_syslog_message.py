"""Records as syslog messages."""

from __future__ import annotations

import pytest

from portbook.audit.shipping.shipment import ShippedRecord
from portbook.audit.shipping.syslog_message import framed, syslog_message

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
