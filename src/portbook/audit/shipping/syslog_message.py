"""A record as a syslog message, by RFC 5424. Pure: no I/O.

The message is the record as it is on disk, and the structured data has its stream, file, number and hash.
"""

from __future__ import annotations

import re
from typing import Final

from portbook.audit.shipping.shipment import ShippedRecord
from portbook.text.late_pattern import late_pattern

__all__ = ["framed", "syslog_message"]

# Facility 13 is the log of audits (RFC 5424, 6.2.1).
_FACILITY: Final = 13
_WARNING, _INFORMATIONAL = 4, 6

# The enterprise number that RFC 5612 keeps for documentation: Portbook has none of its own.
_STRUCTURE: Final = "portbook@32473"

_NOT_PRINTABLE: Final = late_pattern(r"[^!-~]", re.ASCII)
_MAX_HOST: Final = 255
_MAX_RUN: Final = 128

_BAD_STATUS: Final = 400


def syslog_message(record: ShippedRecord, host: str, most_bytes: int | None = None) -> bytes:
    """Return the message of a record, written on `host`.

    One of more than `most_bytes` is sent without the record itself, with its number, hash and length.
    """
    status = record.fields.get("status_code")
    is_bad = isinstance(status, int) and status >= _BAD_STATUS
    priority = _FACILITY * 8 + (_WARNING if is_bad else _INFORMATIONAL)
    at, run = record.fields.get("timestamp"), record.file.removesuffix(".jsonl").rpartition(".")[2]
    head = " ".join(
        (
            f"<{priority}>1",
            at if isinstance(at, str) and not _NOT_PRINTABLE.search(at) else "-",
            _name(host, _MAX_HOST),
            "portbook",
            _name(run, _MAX_RUN),
            record.stream,
        )
    )
    whole = b"%b %b %b" % (head.encode(), _structured(record), record.line)
    if most_bytes is None or len(whole) <= most_bytes:
        return whole
    return b"%b %b" % (head.encode(), _structured(record, f' omitted="{len(record.line)}"'))


def framed(message: bytes) -> bytes:
    """Return a message for a stream, which its length begins (RFC 6587, 3.4.1; RFC 5425, 4.3)."""
    return b"%d %b" % (len(message), message)


def _structured(record: ShippedRecord, more: str = "") -> bytes:
    file = re.sub(r'([\\"\]])', r"\\\1", record.file)
    text = f'[{_STRUCTURE} stream="{record.stream}" file="{file}" seq="{record.seq}" hash="{record.hash}"'
    return f"{text}{more}]".encode()


def _name(text: str, most: int) -> str:
    return _NOT_PRINTABLE.sub("_", text)[:most] or "-"
