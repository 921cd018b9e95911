"""A record on its way to a receiver, what a receiver does with it, and the addresses of receivers.

Shipping is at least once: a batch whose answer is lost is sent again. A record has its file, its number
there and its hash, so that the receiver can drop what it has, find what is missing, and check the chain.
Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from portbook.model import JSONObject
from portbook.net.destinations import BadDestination, parse_url
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "BadTarget",
    "CannotShip",
    "OtlpTarget",
    "RecordReceiver",
    "ShipTarget",
    "ShippedRecord",
    "SyslogTarget",
    "otlp_target",
    "syslog_target",
]


class ShippedRecord(NamedTuple):
    """A record as its file has it."""

    stream: str
    file: str
    seq: int
    hash: str
    line: bytes
    """Its bytes, without the line break: what the hash is of."""
    fields: JSONObject


class CannotShip(Exception):
    """Records that did not arrive, and why; the message quotes nothing of them, and no secret."""

    def __init__(self, problem: str, retry_after_s: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after_s = retry_after_s
        """How long the receiver asks to wait, at least."""


class RecordReceiver(Protocol):
    """Takes records. A receiver that hangs is given up by the one who sends."""

    async def send(self, records: Sequence[ShippedRecord]) -> int:
        """Send records, in order; return how many of them the receiver refused for good.

        Raises `CannotShip` where it is not known that all arrived.
        """
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...


# Addresses, as the settings say.

_Scheme: TypeAlias = Literal["udp", "tcp", "tls", "unix"]

# The registered ports of syslog over UDP, TCP and TLS.
_PORTS: Final[dict[str, int]] = {"udp": 514, "tcp": 601, "tls": 6514}


class BadTarget(ValueError):
    """An address that no records can be shipped to."""


class SyslogTarget(NamedTuple):
    """A receiver of syslog messages."""

    scheme: _Scheme
    host: str
    port: int
    path: str = ""
    """Of a Unix socket."""


class OtlpTarget(NamedTuple):
    """A receiver of logs over OTLP/HTTP."""

    url: str


ShipTarget: TypeAlias = SyslogTarget | OtlpTarget


def syslog_target(text: str) -> SyslogTarget:
    """Return the receiver that an address names.

    Raises `BadTarget` where it names none.
    """
    scheme, _, rest = text.partition(":")
    if scheme == "unix":
        path = rest.removeprefix("//")
        if not path.startswith("/"):
            raise BadTarget("a Unix socket is written as unix:/dev/log")
        return SyslogTarget("unix", "", 0, path)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.path.strip("/") or parts.query or parts.username:
        raise BadTarget("write it as udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or unix:/PATH")
    return SyslogTarget(_scheme(parts.scheme), host, port or _PORTS[parts.scheme])


def otlp_target(text: str) -> OtlpTarget:
    """Return the receiver that an address names.

    Raises `BadTarget` where it names none.
    """
    try:
        parse_url(text)
    except BadDestination as error:
        raise BadTarget(f"write it as https://HOST:PORT/v1/logs: {error}") from None
    return OtlpTarget(text)


def _scheme(text: str) -> _Scheme:
    return "udp" if text == "udp" else "tcp" if text == "tcp" else "tls"
