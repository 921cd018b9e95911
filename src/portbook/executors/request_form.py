"""`RequestForm`: what is the same for every request of an operation. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from portbook.apis.gateway import Gateway
from portbook.apis.request_composer import Composed
from portbook.executors.credentials import Credentials, SentCredentials
from portbook.executors.header_lines import fixed_lines, header_lines
from portbook.model import Run
from portbook.net.destinations import Destination, parse_url
from portbook.net.http_client import HttpRequest
from portbook.tools.operation import HttpOperation

__all__ = ["RequestForm", "proxy_of"]


@dataclass(frozen=True, slots=True)
class RequestForm:
    """The parts of a request that the operator decides on."""

    operation: HttpOperation
    destination: Destination
    credentials: Credentials
    lines: str
    """The header lines that begin every request."""
    max_response_bytes: int
    proxy: Destination | None
    ca_file: Path | None
    retries: int
    """How often a request may be retried, where policy allows it."""
    gives_error_bodies: bool

    @classmethod
    def of(
        cls, operation: HttpOperation, destination: Destination, gateway: Gateway, credentials: Credentials
    ) -> RequestForm:
        """Return the form of an operation behind `gateway`."""
        retries = gateway.retries if operation.retries is None else operation.retries
        return cls(
            operation,
            destination,
            credentials,
            fixed_lines(gateway, operation),
            operation.max_response_bytes or gateway.max_response_bytes,
            proxy_of(gateway),
            gateway.ca_file,
            retries if operation.is_idempotent else 0,
            gateway.gives_error_bodies,
        )

    def filled(self, composed: Composed, credentials: SentCredentials, run: Run) -> HttpRequest:
        """Return the request of one call."""
        operation = self.operation
        return HttpRequest(
            self.destination,
            operation.method,
            _with_query(composed.target, credentials.query) if credentials.query else composed.target,
            header_lines(self.lines, composed, credentials, run),
            composed.body,
            operation.is_idempotent,
            self.max_response_bytes,
            self.proxy,
            self.ca_file,
        )


def proxy_of(gateway: Gateway) -> Destination | None:
    """Return the proxy that requests of a gateway go through, if there is one."""
    return None if gateway.proxy is None else parse_url(gateway.proxy).destination


def _with_query(target: str, pairs: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}{pairs}"
