"""Ships records to a syslog receiver: over UDP, TCP, TLS or a Unix socket.

Syslog has no acknowledgements. Over TCP and TLS a batch counts as arrived once the receiver's machine has
acknowledged every byte and the connection is still open; over UDP and Unix datagrams, once it is sent.

A message, by RFC 5424, is the record as it is on disk; the structured data has its stream, file, number and
hash.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from portbook.audit.shipping.receiver_and_address import CannotShip, ShippedRecord, SyslogTarget
from portbook.text.late_pattern import late_pattern

__all__ = ["SyslogReceiver", "framed", "syslog_message"]

# The most that a datagram holds, less some room for headers.
_DATAGRAM_BYTES: Final = 65_000

# How often the kernel is asked whether everything was acknowledged.
_LOOK_S: Final = 0.01

# Linux: how many bytes the other side has not acknowledged, and the state of an open connection.
_UNACKNOWLEDGED: Final = 0x5411
_ESTABLISHED: Final = 1


class SyslogReceiver:
    """Sends messages to one address, over one connection that is opened when it is needed."""

    def __init__(self, target: SyslogTarget, ca_file: Path | None = None) -> None:
        self._target = target
        self._ca_file = ca_file
        self._host = socket.gethostname()
        self._datagrams: socket.socket | None = None
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, records: Sequence[ShippedRecord]) -> int:
        """Send records, in order. Nothing refuses one.

        Raises `CannotShip` where it is not known that all arrived.
        """
        try:
            if await self._is_datagram():
                await self._send_datagrams(records)
            else:
                await self._send_stream(records)
        except OSError as error:
            await self.close()
            raise CannotShip(_words(error)) from None
        except BaseException:  # given up while it was sent: how much of it arrived is not known
            await self.close()
            raise
        return 0

    async def close(self) -> None:
        """Close the connection."""
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None
        if self._stream is not None:
            self._stream[1].transport.abort()
            self._stream = None

    async def _is_datagram(self) -> bool:
        """Open a socket for datagrams, if the target is one."""
        if self._datagrams is not None:
            return True
        if self._stream is not None or self._target.scheme in ("tcp", "tls"):
            return False
        if self._target.scheme == "unix":
            return self._opened(socket.AF_UNIX, self._target.path)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._target.host, self._target.port, type=socket.SOCK_DGRAM)
        return self._opened(found[0][0], found[0][4])

    def _opened(self, family: int, address: Any) -> bool:
        opened = socket.socket(family, socket.SOCK_DGRAM)
        try:
            opened.setblocking(False)
            opened.connect(address)
        except OSError as error:
            opened.close()
            if error.errno == errno.EPROTOTYPE:  # a Unix socket for streams
                return False
            raise
        self._datagrams = opened
        return True

    async def _send_datagrams(self, records: Sequence[ShippedRecord]) -> None:
        assert self._datagrams is not None
        loop = asyncio.get_running_loop()
        for record in records:
            await loop.sock_sendall(self._datagrams, syslog_message(record, self._host, _DATAGRAM_BYTES))

    async def _send_stream(self, records: Sequence[ShippedRecord]) -> None:
        if self._stream is not None and not _is_open(*self._stream):
            await self.close()  # it was closed while there was nothing to send
        if self._stream is None:
            self._stream = await self._connect()
        reader, writer = self._stream
        writer.write(b"".join(framed(syslog_message(record, self._host)) for record in records))
        await writer.drain()
        while _unacknowledged(writer):  # noqa: ASYNC110 - the kernel does not notify of it
            await asyncio.sleep(_LOOK_S)
        if not _is_open(reader, writer):
            raise ConnectionResetError(errno.ECONNRESET, "the receiver closed the connection")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        scheme, host, port, path = self._target
        if scheme == "unix":
            return await asyncio.open_unix_connection(path)
        if scheme == "tcp":
            return await asyncio.open_connection(host, port)
        import ssl  # late: 15 ms with its certificates

        context = ssl.create_default_context(cafile=self._ca_file)
        return await asyncio.open_connection(host, port, ssl=context, server_hostname=host)


def _is_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    if reader.at_eof() or reader.exception() is not None or writer.transport.is_closing():
        return False
    found = writer.get_extra_info("socket")
    if sys.platform != "linux" or found.family == socket.AF_UNIX:
        return True
    state: bytes = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
    return state[0] == _ESTABLISHED


def _unacknowledged(writer: asyncio.StreamWriter) -> int:
    """Return how many bytes were not sent, or not acknowledged, as far as the system tells."""
    if waiting := writer.transport.get_write_buffer_size():
        return waiting
    found = writer.get_extra_info("socket")
    if sys.platform != "linux" or found.family == socket.AF_UNIX or found.fileno() < 0:
        return 0
    import fcntl

    return int.from_bytes(fcntl.ioctl(found.fileno(), _UNACKNOWLEDGED, bytes(4)), sys.byteorder)


def _words(error: OSError) -> str:
    """Return what went wrong, without the text of an unexpected exception."""
    if isinstance(error, TimeoutError):
        return "the receiver does not answer"
    return error.strerror or type(error).__name__


# Messages.

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
