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
# What `is_trace_id` accepts, and nearly every call has: such a one needs no further looks.
_W3C_TRACE: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")


def fixed_lines(gateway: Gateway, operation: HttpOperation) -> str:
    """Return the lines that begin all requests of an operation."""
    fixed = "".join(f"{name}: {value}\r\n" for name, value in gateway.headers if isinstance(value, str))
    ours = f"User-Agent: portbook/{__version__}\r\nAccept-Encoding: identity\r\n"
    return f"{ours}{fixed}Accept: {operation.accept}\r\n"


def header_lines(fixed: str, composed: Composed, credentials: SentCredentials, run: Run) -> bytes:
    """Return all lines of one request, beginning with the `fixed` ones of its operation."""
    identity, correlation = run.identity, run.correlation
    request, trace, span = identity
    if _W3C_TRACE.fullmatch(trace):
        traceparent = f"00-{trace}-{span[:16]}-01"
        correlated = (
            _cleaned("X-Correlation-ID", correlation) if correlation else f"X-Correlation-ID: {trace}\r\n"
        )
    else:
        traceparent = traceparent_of(identity)
        correlated = _cleaned("X-Correlation-ID", correlation or trace)
    lines = f"X-Request-ID: {request}\r\nX-Trace-ID: {trace}\r\ntraceparent: {traceparent}\r\n{correlated}"
    if run.session is not None:
        lines += _cleaned("X-Session-ID", run.session)
    if composed.headers:
        lines += "".join([f"{name}: {value}\r\n" for name, value in composed.headers])
    if composed.cookies or credentials.cookies:
        lines += f"Cookie: {'; '.join(filter(None, (composed.cookies, credentials.cookies)))}\r\n"
    content_type = f"Content-Type: {composed.content_type}\r\n" if composed.body else ""
    return f"{fixed}{content_type}{lines}{credentials.lines}".encode("ascii")


def _cleaned(name: str, value: str) -> str:
    """Return a header line with a caller's value, reduced to printable ASCII and truncated."""
    if not (value.isascii() and value.isprintable()):
        value = _UNSAFE.sub("", value)
    value = value[:_MAX_ID].strip()
    return f"{name}: {value}\r\n" if value else ""
