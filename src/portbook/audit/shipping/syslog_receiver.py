"""Ships records to a syslog receiver: over UDP, TCP, TLS or a Unix socket.

Syslog has no acknowledgements. Over TCP and TLS a batch counts as arrived once the receiver's machine has
acknowledged every byte and the connection is still open; over UDP and Unix datagrams, once it is sent.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from portbook.audit.shipping.ship_target import SyslogTarget
from portbook.audit.shipping.shipment import CannotShip, ShippedRecord
from portbook.audit.shipping.syslog_message import framed, syslog_message

__all__ = ["SyslogReceiver"]

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
