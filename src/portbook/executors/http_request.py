"""The requests of calls to HTTP APIs: header lines, forms that are made once, bodies composed in threads.

A form with files is decoded, copied and searched for its boundary: at 64 MiB that takes a third of a second.
A list of 100,000 numbers in a query takes longer. Meanwhile, the event loop serves other calls. What all such
requests hold in memory together is bounded.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from portbook.apis.bodies.body_writer import NamedFile
from portbook.apis.gateway import Gateway
from portbook.apis.parameter_styles import unsendable
from portbook.apis.request_composer import Composed, Composer
from portbook.executors.credentials import Credentials, SentCredentials
from portbook.executors.memory_room import MemoryRoom
from portbook.executors.upload_folder import UploadFolder
from portbook.model import JSON, JSONObject, Run
from portbook.net.destinations import Destination, Destinations, parse_url
from portbook.net.http_client import HttpRequest
from portbook.text.named_tuple import new_tuple
from portbook.tools.http_operation import HttpOperation
from portbook.version import __version__
from portbook.wire.trace_context import traceparent_of

__all__ = ["ComposedRequests", "RequestForm", "fixed_lines", "header_lines", "proxy_of"]

# The header lines of a request: ours, the operator's, the arguments' and the credentials'.

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


# `RequestForm`: what is the same for every request of an operation.


class RequestForm:
    """The parts of a request that the operator decides on."""

    __slots__ = (
        "_lines",
        "_proxy",
        "credentials",
        "destination",
        "gateway",
        "gives_error_bodies",
        "max_response_bytes",
        "name",
        "operation",
        "permitted_by",
        "retries",
    )

    def __init__(
        self,
        name: str,
        operation: HttpOperation,
        destination: Destination,
        gateway: Gateway,
        credentials: Credentials,
    ) -> None:
        """Prepare the requests of the tool `name`, which is an operation behind `gateway`."""
        self.name = name
        self.operation = operation
        self.destination = destination
        self.gateway = gateway
        self.credentials = credentials
        self.gives_error_bodies = gateway.gives_error_bodies
        retries = gateway.retries if operation.retries is None else operation.retries
        self.retries = retries if operation.is_idempotent else 0
        """How often a request may be retried, where policy allows it."""
        self.permitted_by: Destinations | None = None
        """The allowlist that is known to permit the destination."""
        self._lines = fixed_lines(gateway, operation)
        self.max_response_bytes = operation.max_response_bytes or gateway.max_response_bytes
        self._proxy = proxy_of(gateway)

    def is_permitted_by(self, destinations: Destinations) -> bool:
        """Return whether an allowlist permits the destination; where it does, that is kept."""
        if not destinations.permits(self.destination):
            return False
        self.permitted_by = destinations
        return True

    def filled(self, composed: Composed, credentials: SentCredentials, run: Run) -> HttpRequest:
        """Return the request of one call."""
        operation = self.operation
        return new_tuple(
            HttpRequest,
            (
                self.destination,
                operation.method,
                _with_query(composed.target, credentials.query) if credentials.query else composed.target,
                header_lines(self._lines, composed, credentials, run),
                composed.body,
                operation.is_idempotent,
                self.max_response_bytes,
                self._proxy,
                self.gateway.ca_file,
                False,
            ),
        )


def proxy_of(gateway: Gateway) -> Destination | None:
    """Return the proxy that requests of a gateway go through, if there is one."""
    return None if gateway.proxy is None else parse_url(gateway.proxy).destination


def _with_query(target: str, pairs: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}{pairs}"


# Composed within a few milliseconds; a step on the event loop may take 50.
_QUICK_BYTES: Final = 256 * 1024
# What an item of a list, or a member of an object, costs beside its text: it may be a part of a form.
_ITEM_BYTES: Final = 128
# Of all large requests at once: four of the largest that a common API takes.
_ROOM_BYTES: Final = 256 * 1024 * 1024


class ComposedRequests:
    """The requests of all operations, as they are needed."""

    __slots__ = ("_composers", "_gateways", "_room")

    def __init__(self, gateways: Mapping[str, Gateway], room: MemoryRoom | None = None) -> None:
        self._gateways = gateways
        self._composers: dict[str, Composer] = {}
        self._room = room or MemoryRoom(_ROOM_BYTES)

    def at_once(self, name: str, operation: HttpOperation, arguments: JSONObject) -> Composed | None:
        """Return the request of the tool `name` for `arguments`, or None where `of` has to compose it.

        Raises `Refused` where the arguments cannot be sent.
        """
        composer = self._composers.get(name)
        if composer is None or composer.operation is not operation:
            composer = self._composer(name, operation)
        if composer.takes_files:
            return None
        size = _ITEM_BYTES * len(arguments)
        for argument, value in arguments.items():
            # Most arguments are strings, and to measure these needs no list of what is still to be measured.
            size += len(argument) + (len(value) if isinstance(value, str) else _size(value))
        return composer.compose(arguments) if size <= _QUICK_BYTES else None

    @asynccontextmanager
    async def of(
        self, name: str, operation: HttpOperation, arguments: JSONObject
    ) -> AsyncGenerator[Composed]:
        """Give the request of the tool `name` for `arguments`; its memory counts until it was sent.

        Raises `Refused` where the arguments cannot be sent.
        """
        composer = self._composer(name, operation)
        named = composer.files_in(arguments)
        size = _size(arguments)
        if not named and size <= _QUICK_BYTES:
            yield composer.compose(arguments)
            return
        gateway = self._gateways[operation.gateway]
        async with self._room.of(size + (gateway.max_file_bytes if named else 0)) as held:
            files: dict[str, bytes] = {}
            if named:
                files = await held.in_thread(_read, gateway, named)
                held.keep_only(size + sum(len(files[file.path]) for file in named))
            yield await held.in_thread(composer.compose, arguments, files)

    def _composer(self, name: str, operation: HttpOperation) -> Composer:
        composer = self._composers.get(name)
        if composer is None or composer.operation is not operation:
            composer = self._composers[name] = Composer(operation)
        return composer


def _read(gateway: Gateway, named: list[NamedFile]) -> dict[str, bytes]:
    """Return the files that a call names by their paths.

    Raises `Refused` where the operator set no folder, or a file cannot be sent.
    """
    if gateway.files is None:
        raise unsendable(named[0].place, "is a path, and the operator has set no folder for files")
    return UploadFolder(gateway.files, gateway.max_file_bytes).read_all(named)


def _size(value: JSON) -> int:
    """Return about how many bytes a request with this value takes."""
    size = 0
    waiting = [value]
    for each in waiting:  # it grows meanwhile
        if isinstance(each, str):
            size += len(each)
        elif isinstance(each, list):
            size += _ITEM_BYTES * len(each)
            waiting.extend(each)
        elif isinstance(each, dict):
            size += _ITEM_BYTES * len(each) + sum(map(len, each))
            waiting.extend(each.values())
    return size
