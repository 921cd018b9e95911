"""The header lines of a request: ours, the operator's, the arguments' and the credentials'. Pure: no I/O."""

from __future__ import annotations

import re
from typing import Final

from portbook.apis.gateway import Gateway
from portbook.apis.request_composer import Composed
from portbook.executors.credentials import SentCredentials
from portbook.model import Run
from portbook.tools.operation import HttpOperation
from portbook.version import __version__
from portbook.wire.trace_context import traceparent_of

__all__ = ["fixed_lines", "header_lines"]

# The longest id of a caller that is passed on: as much as common servers log.
_MAX_ID: Final = 256
_UNSAFE: Final = re.compile(r"[^ -~]+")


def fixed_lines(gateway: Gateway, operation: HttpOperation) -> str:
    """Return the lines that begin all requests of an operation."""
    fixed = "".join(f"{name}: {value}\r\n" for name, value in gateway.headers if isinstance(value, str))
    ours = f"User-Agent: portbook/{__version__}\r\nAccept-Encoding: identity\r\n"
    return f"{ours}{fixed}Accept: {operation.accept}\r\n"


def header_lines(fixed: str, composed: Composed, credentials: SentCredentials, run: Run) -> bytes:
    """Return all lines of one request, beginning with the `fixed` ones of its operation."""
    identity = run.identity
    session = "" if run.session is None else _cleaned("X-Session-ID", run.session)
    content_type = f"Content-Type: {composed.content_type}\r\n" if composed.body else ""
    given = "".join([f"{name}: {value}\r\n" for name, value in composed.headers]) if composed.headers else ""
    if composed.cookies or credentials.cookies:
        given += f"Cookie: {'; '.join(filter(None, (composed.cookies, credentials.cookies)))}\r\n"
    return (
        f"{fixed}"
        f"{content_type}"
        f"X-Request-ID: {identity.request}\r\n"
        f"X-Trace-ID: {identity.trace}\r\n"
        f"traceparent: {traceparent_of(identity)}\r\n"
        f"{_cleaned('X-Correlation-ID', run.correlation or identity.trace)}"
        f"{session}"
        f"{given}"
        f"{credentials.lines}"
    ).encode("ascii")


def _cleaned(name: str, value: str) -> str:
    """Return a header line with a caller's value, reduced to printable ASCII and truncated."""
    if not (value.isascii() and value.isprintable()):
        value = _UNSAFE.sub("", value)
    value = value[:_MAX_ID].strip()
    return f"{name}: {value}\r\n" if value else ""
