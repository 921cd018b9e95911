"""A server as a process of ours, over its standard input and output, ended without a trace.

`StdioTransport` speaks with it, one message per line; `ChildProcess` starts and ends it. What it writes to
standard error becomes lines for the operator (`StderrLines`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from portbook.escaping import escaped
from portbook.model import JSONObject
from portbook.upstreams import process_reaper
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.transport import MAX_ANSWER_BYTES, NotSent, Receiver
from portbook.wire.lines_and_size_limit import LineSplitter

__all__ = ["ChildProcess", "StderrLines", "StdioTransport", "child_environment"]

# What may wait for a server that does not read.
_MAX_UNREAD_BYTES: Final = 16 * 1024 * 1024


class StdioTransport:
    """The connection to one process."""

    knows_requests = False

    def __init__(
        self,
        declared: DeclaredUpstream,
        environment: Callable[[], Awaitable[Mapping[str, str]]],
        tell: Callable[[str], None],
        redact: Callable[[str], str],
    ) -> None:
        """Start `declared` with the variables that `environment` returns.

        `tell` gets its error lines, after `redact`.
        """
        self._declared = declared
        self._environment = environment
        self._stderr = StderrLines(tell, asyncio.get_running_loop().time, redact)
        self._lines = LineSplitter(MAX_ANSWER_BYTES)
        self._child: ChildProcess | None = None
        self._receiver: Receiver | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the process runs and reads."""
        return self._child is not None and self._child.is_open

    @property
    def last_words(self) -> str | None:
        """Return the last line that the process wrote to standard error."""
        return self._stderr.last

    async def open(self, receiver: Receiver) -> None:
        """Start the process.

        Raises `NotSent` where it cannot be started.
        """
        declared, environ = self._declared, await self._environment()
        command, sandbox = declared.command, declared.sandbox
        if sandbox is not None:
            from portbook.sandbox.confined_command import NotConfinable, confined_command

            try:
                command = confined_command(command, sandbox, environ, declared.starts_in)
            except NotConfinable as error:
                raise NotSent(f"it cannot be confined: {error}") from None
        self._receiver = receiver
        self._child = await ChildProcess.start(
            command,
            environ,
            declared.starts_in,
            most_tasks=None if sandbox is None else sandbox.processes,
            on_output=self._feed,
            on_error_output=self._stderr.feed,
            on_end=self._ended,
        )

    def send(self, message: JSONObject, data: bytes, of: int | None = None) -> None:
        """Write a message.

        Raises `NotSent` where the process has ended, or has not read for long.
        """
        child = self._child
        if child is None or not child.is_open:
            raise NotSent("it has ended")
        if child.unread_bytes > _MAX_UNREAD_BYTES:
            raise NotSent("it does not read what it is sent")
        child.write(data + b"\n")

    def abandon(self, of: int) -> None:
        """Do nothing: there is one stream for all."""

    def agreed(self, revision: str) -> None:
        """Do nothing: the revision is not part of the stream."""

    async def close(self) -> None:
        """End the process and all below it."""
        child, self._child = self._child, None
        self._receiver = None
        if child is not None:
            await child.stop()
            self._stderr.close()

    def _feed(self, data: bytes) -> None:
        for frame in self._lines.feed(data):
            if self._receiver is not None:
                self._receiver.received(frame, None)

    def _ended(self) -> None:
        if self._receiver is not None:
            status = None if self._child is None else self._child.exit_status
            self._receiver.lost(
                "its process ended" + ("" if status is None else f" with {_in_words(status)}")
            )


def _in_words(status: int) -> str:
    """Return an exit status, with the signal that it stands for in a shell, or in Python."""
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return f"status {status} ({signal.Signals(number).name})"
    return f"status {status}"


# `ChildProcess`: a server as a process of ours, with its standard streams, ended without a trace.

# The environment of a server's process: a few variables of ours, and those that the settings name.
#
# One variable counts how many Portbooks stand before the process. A server whose command starts Portbook with
# the same settings would start itself again without end; the count ends that.

# What programs need to find themselves, their user, their language and the way out; never a secret of ours.
_PASSED_ON: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "TZ", "LANG", "LANGUAGE"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("all_proxy", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "PATHEXT", "COMSPEC"),
)
_LOCALE: Final = "LC_"

_DEPTH: Final = "PORTBOOK_SERVERS_BEFORE"
_MAX_DEPTH: Final = 4


def child_environment(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a child: of `ours` those on the list, and all that it is `given`.

    Raises `NotSent` where too many Portbooks stand before it.
    """
    before = ours.get(_DEPTH, "")
    depth = int(before) if before.isdecimal() and len(before) < len("100") else 0
    if depth >= _MAX_DEPTH:
        raise NotSent(
            f"{_MAX_DEPTH} Portbooks in a row stand before this one; where the command of a server is "
            "Portbook itself, give it settings of its own with --config"
        )
    passed_on = {
        name: value for name, value in ours.items() if name in _PASSED_ON or name.startswith(_LOCALE)
    }
    return {**passed_on, **given, _DEPTH: str(depth + 1)}


# How long a server may take to end by itself once its standard input is closed.
_LEAVES_S: Final = 1.0
# Without the site and the environment's variables: it starts in a few milliseconds.
_REAPER: Final = (sys.executable, "-I", "-S", process_reaper.__file__)

# The reaper takes two graces of two seconds at most.
_KEEPER_S: Final = 6.0
_STEP_S: Final = 0.01
# As many lines as a server may write into this take no longer than a few milliseconds.
_PIECE_BYTES: Final = 8192
# How long standard error may stay open after standard output has ended.
_LAST_WORDS_S: Final = 0.2
# A reaper whose streams have ended is ending itself; the system tells its status a moment later.
_STATUS_S: Final = 0.05


class _Pipe(asyncio.Protocol):
    """The reading end of a stream."""

    def __init__(self, feed: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._feed = feed
        self._end = end
        self._transport: asyncio.ReadTransport | None = None
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass on what was read; of much, a piece in each turn of the loop, so that others have theirs."""
        self._feed(data[:_PIECE_BYTES])
        self._rest = data[_PIECE_BYTES:]
        if self._rest and self._transport is not None:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        data, self._rest = self._rest, b""
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.resume_reading()
        self.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()


class _Ending:
    """Tells of the end of a server once its last words are there, or a moment after its output ended."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell: Callable[[], None] | None = tell
        self._has_output_ended = False
        self._errors = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the end of standard error."""
        await self._errors.wait()

    @property
    def have_errors_ended(self) -> bool:
        """Return whether standard error has ended, which the reaper holds until it ends itself."""
        return self._errors.is_set()

    def output_ended(self) -> None:
        self._has_output_ended = True
        if self._errors.is_set():
            self._finish()
        else:
            asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._finish)

    def errors_ended(self) -> None:
        self._errors.set()
        if self._has_output_ended:
            self._finish()

    def _finish(self) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()


class ChildProcess:
    """One server, started and kept by a reaper."""

    def __init__(self, process: subprocess.Popen[bytes], lifeline: int) -> None:
        self._process = process
        self._lifeline: int | None = lifeline
        self._stdin: asyncio.WriteTransport | None = None
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._readers: list[asyncio.ReadTransport] = []
        self._ending = _Ending(lambda: None)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        *,
        most_tasks: int | None = None,
        on_output: Callable[[bytes], None],
        on_error_output: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> ChildProcess:
        """Start `command`; `on_end` is called when its standard output has ended.

        It is ended when it has more than `most_tasks` processes and threads.

        Raises `NotSent` where the reaper cannot be started.
        """
        reading, writing = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220, S603 - a few milliseconds; no shell
                [*_REAPER, str(reading), str(most_tasks or 0), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environ),
                cwd=folder,
                pass_fds=(reading,),
                start_new_session=True,
            )
        except OSError as error:
            os.close(writing)
            what = "its cwd cannot be used" if error.filename == folder else "it cannot be started"
            raise NotSent(f"{what}: {error.strerror}") from None
        finally:
            os.close(reading)
        child = cls(process, writing)
        try:
            await child._connect(on_output, on_error_output, on_end)
        except BaseException:
            await child.stop()
            raise
        return child

    async def _connect(
        self,
        on_output: Callable[[bytes], None],
        on_error_output: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        loop, process = asyncio.get_running_loop(), self._process
        stdin, _ = await loop.connect_write_pipe(asyncio.Protocol, process.stdin)
        self._stdin = stdin
        self._ending = ending = _Ending(on_end)
        for stream, feed, end in (
            (process.stdout, on_output, ending.output_ended),
            (process.stderr, on_error_output, ending.errors_ended),
        ):
            reader, _ = await loop.connect_read_pipe(lambda feed=feed, end=end: _Pipe(feed, end), stream)
            self._readers.append(reader)

    @property
    def pid(self) -> int:
        """Return the id of the reaper."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Return the exit status of a server that has ended; None where it is not known."""
        if not self._ending.have_errors_ended:
            return self._process.poll()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_STATUS_S)
        return None

    @property
    def is_open(self) -> bool:
        """Return whether the server can be written to."""
        return self._stdin is not None and not self._stdin.is_closing()

    @property
    def unread_bytes(self) -> int:
        """Return how many bytes wait for the server to read them."""
        waiting = 0 if self._stdin is None else self._stdin.get_write_buffer_size()
        return waiting + self._outgoing_bytes

    def write(self, data: bytes) -> None:
        """Write to its standard input: at once all that this turn of the event loop writes."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(data)
        self._outgoing_bytes += len(data)

    def _flush(self) -> None:
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        self._outgoing_bytes = 0
        if data and self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    async def stop(self) -> int | None:
        """End the server and every process below it; return its exit status, None if it had to be killed."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._flush()
            # Not close(), which would first wait for a server that does not read.
            self._stdin.abort()
        is_ended = await self._ends_within(_LEAVES_S)
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        if not is_ended and not await self._ends_within(_KEEPER_S):
            self._process.kill()
            await self._ends_within(_KEEPER_S)
        with contextlib.suppress(TimeoutError):  # its last words may still be on their way
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._ending.wait()
        for reader in self._readers:
            reader.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:  # no effect on those that a transport has closed
                stream.close()
        await asyncio.sleep(0)  # transports close in the loop's next iteration
        return self._process.returncode if is_ended else None

    async def _ends_within(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._process.poll() is None:
            if loop.time() > until:
                return False
            await asyncio.sleep(_STEP_S)
        return True


# What a server writes to standard error, as lines for the operator, bounded.

_MAX_LINE: Final = 1000
# A start writes a few dozen lines; beyond that a server that complains without end says the same.
_MAX_PER_SECOND: Final = 50
_REMEMBERED: Final = 5


class StderrLines:
    """Passes lines on, counts those that are too many, and remembers the last few."""

    def __init__(
        self, tell: Callable[[str], None], now: Callable[[], float], redact: Callable[[str], str]
    ) -> None:
        """Pass lines on to `tell`; a line is redacted before it is kept anywhere."""
        self._tell = tell
        self._redact = redact
        self._now = now
        self._held = b""
        self._is_cut = False
        self._second = 0
        self._told = 0
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=_REMEMBERED)

    @property
    def last(self) -> str | None:
        """Return the latest line that is not empty."""
        return self._last[-1] if self._last else None

    def feed(self, data: bytes) -> None:
        """Add what was written."""
        *lines, tail = (self._held + data).split(b"\n")
        for line in lines:
            if not self._is_cut:
                self._pass_on(line)
            self._is_cut = False
        self._held = b"" if self._is_cut else tail
        if len(self._held) > _MAX_LINE:  # of a longer line the rest is dropped
            self._pass_on(self._held)
            self._held, self._is_cut = b"", True

    def close(self) -> None:
        """End the last line."""
        if self._held and not self._is_cut:
            self._pass_on(self._held)
        self._held = b""
        self._confess()

    def _pass_on(self, line: bytes) -> None:
        text = escaped(self._redact(line.decode("utf-8", "replace").strip()), _MAX_LINE)
        if not text:
            return
        self._last.append(text)
        second = int(self._now())
        if second != self._second:
            self._confess()
            self._second, self._told = second, 0
        self._told += 1
        if self._told <= _MAX_PER_SECOND:
            self._tell(text)
        else:
            self._left_out += 1

    def _confess(self) -> None:
        if self._left_out:
            self._tell(f"[{self._left_out} lines were left out]")
            self._left_out = 0
