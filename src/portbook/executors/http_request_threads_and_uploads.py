"""The requests of calls to HTTP APIs: header lines, forms that are made once, bodies composed in threads.

A form with files is decoded, copied and searched for its boundary: at 64 MiB that takes a third of a second.
A list of 100,000 numbers in a query takes longer. Meanwhile, the event loop serves other calls. What all such
requests hold in memory together is bounded.

`UploadFolder` reads the files that callers name by their paths.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from portbook.apis.arguments_put_into_request import Composed, Composer
from portbook.apis.form_and_file_bodies import NamedFile
from portbook.apis.gateway import Gateway
from portbook.apis.path_and_query_values import unsendable
from portbook.executors.api_credentials import Credentials, SentCredentials
from portbook.model import JSON, JSONObject, Run
from portbook.net.destinations import Destination, Destinations, parse_url
from portbook.net.http_client import HttpRequest
from portbook.text.named_tuple import new_tuple
from portbook.tools.http_operation import HttpOperation
from portbook.version import __version__
from portbook.wire.trace_context import traceparent_of

__all__ = [
    "ComposedRequests",
    "HeldMemory",
    "MemoryRoom",
    "RequestForm",
    "UploadFolder",
    "fixed_lines",
    "header_lines",
    "proxy_of",
]

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


# `MemoryRoom`: how many bytes the requests of all calls may hold at once; who comes later waits for room.

_P = ParamSpec("_P")
_T = TypeVar("_T")


class MemoryRoom:
    """A number of bytes, given out in the order in which they were asked for."""

    __slots__ = ("_free", "_total", "_waiting")

    def __init__(self, total: int) -> None:
        self._total = self._free = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def of(self, size: int) -> AsyncGenerator[HeldMemory]:
        """Hold `size` bytes; what is larger than all of the room has it for itself."""
        size = min(size, self._total)
        await self._take(size)
        held = HeldMemory(size, self._give_back)
        try:
            yield held
        finally:
            held.end()

    async def _take(self, size: int) -> None:
        if size <= self._free and not self._waiting:
            self._free -= size
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                with suppress(ValueError):  # room came free before this task woke: it is no longer in line
                    self._waiting.remove((size, granted))
                self._grant()  # those behind it may need less
            else:
                self._give_back(size)
            raise

    def _give_back(self, size: int) -> None:
        self._free += size
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, granted = self._waiting.popleft()
            if not granted.done():
                self._free -= size
                granted.set_result(None)


class HeldMemory:
    """The bytes that one call holds."""

    __slots__ = ("_give_back", "_running", "_size")

    def __init__(self, size: int, give_back: Callable[[int], None]) -> None:
        self._size = size
        self._give_back = give_back
        self._running: asyncio.Future[Any] | None = None

    def keep_only(self, size: int) -> None:
        """Give back what is held beyond `size`."""
        if size < self._size:
            self._give_back(self._size - size)
            self._size = size

    async def in_thread(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what `work` does in a thread. If the call is cancelled, the bytes are held until it ends."""
        running = self._running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        await asyncio.wait([running])  # leaves the thread alone when this call is cancelled
        self._running = None
        return running.result()

    def end(self) -> None:
        """Give everything back, at the latest when the thread has ended."""
        if self._running is None:
            self.keep_only(0)
        else:
            self._running.add_done_callback(self._abandoned)

    def _abandoned(self, ended: asyncio.Future[Any]) -> None:
        if not ended.cancelled():
            ended.exception()  # nobody waits for it, and a failure without a reader would be logged
        self.keep_only(0)


# `UploadFolder`: reads files that callers name by their paths, in the one folder that the operator set.
#
# Only regular files in that folder or below are read. No symbolic link is followed at any step, and opening
# never waits: a named pipe is refused like every other special file.

_STEP: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_LAST: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class UploadFolder:
    """The files of one gateway's folder, up to a size."""

    __slots__ = ("_folder", "_max_bytes")

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def read_all(self, files: list[NamedFile]) -> dict[str, bytes]:
        """Return the data of `files` by their paths; together they are within the size.

        Raises `Refused` where one of them cannot be sent.
        """
        found: dict[str, bytes] = {}
        left = self._max_bytes
        for file in files:
            if file.path not in found:
                found[file.path] = self._read(file, left)
            left -= len(found[file.path])  # it is sent as often as it is named
            if left < 0:
                raise unsendable(file.place, self._too_large)
        return found

    @property
    def _too_large(self) -> str:
        return f"is larger than {self._max_bytes} bytes, the limit of one call"

    def _read(self, file: NamedFile, max_bytes: int) -> bytes:
        *steps, last = file.path.split("/")
        if not last or any(step in ("", ".", "..") or "\0" in step for step in (*steps, last)):
            raise unsendable(file.place, "must be a path in the folder for files, such as reports/may.pdf")
        try:
            with ExitStack() as opened:
                folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
                opened.callback(os.close, folder)
                for step in steps:
                    folder = os.open(step, _STEP, dir_fd=folder)
                    opened.callback(os.close, folder)
                found = os.open(last, _LAST, dir_fd=folder)
                opened.callback(os.close, found)
                if not stat.S_ISREG(os.fstat(found).st_mode):
                    raise unsendable(file.place, "is not a regular file")
                with os.fdopen(found, "rb", closefd=False) as reader:
                    data = reader.read(max_bytes + 1)
        except OSError:
            raise unsendable(file.place, "is not a file that can be read in the folder for files") from None
        if len(data) > max_bytes:
            raise unsendable(file.place, self._too_large)
        return data
