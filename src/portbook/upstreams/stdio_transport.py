"""`StdioTransport`: a server over its standard input and output, one message per line."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from portbook.errors import Refused
from portbook.escaping import escaped
from portbook.model import JSONObject
from portbook.text.named_tuple import NamedTuple
from portbook.upstreams.child_process import ChildProcess
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.transport import NotSent, Receiver
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame, LineSplitter
from portbook.wire.parsing import parse

__all__ = [
    "MAX_ANSWER_BYTES",
    "NO_MESSAGE",
    "StderrLines",
    "StdioTransport",
    "UnreadableAnswer",
    "messages_in",
]

# What a server wrote, as messages: lines that are none are told apart from answers that are broken. Pure.
#
# What programs print beside their messages, such as a banner, is dropped. What was meant as an answer and
# cannot be read fails the request that it answers.

# What the operator is told of a line that is dropped.
NO_MESSAGE: Final = "it wrote a line that is no message"

# An id in an answer that cannot be parsed, and how far from its ends it is looked for.
_ID: Final = re.compile(rb'"id"\s*:\s*([0-9]{1,15})(?![0-9.eE])')
_ENDS: Final = 200
# How a message can begin; what programs print begins otherwise, and costs no parsing.
_BEGINS: Final = (b"{", b"[")


class UnreadableAnswer(NamedTuple):
    """What was meant as an answer and cannot be read."""

    problem: str
    named: frozenset[int] = frozenset()
    """The ids that it names."""


def messages_in(frame: Frame, *, has_batches: bool) -> list[Any] | UnreadableAnswer:
    """Return the messages of one line or event; there is none in what is not a message."""
    if frame is OVERSIZE:
        return UnreadableAnswer("an answer is too large")
    if frame.lstrip()[:1] not in _BEGINS:
        return [None]
    is_meant = b'"jsonrpc"' in frame  # other lines are what programs print
    try:
        message = parse(frame)
    except Refused as refused:
        if not is_meant:
            return [None]
        problem = "; ".join(("an answer is not JSON", *(each.message for each in refused.findings)))
        return UnreadableAnswer(problem, _ids_in(frame))
    if not isinstance(message, list):
        return [message]
    if is_meant and not has_batches:
        return UnreadableAnswer("an answer is a batch, which its revision does not have")
    return message


def _ids_in(frame: bytes) -> frozenset[int]:
    ends = frame[:_ENDS] + b" " + frame[-_ENDS:]
    return frozenset(int(number) for number in _ID.findall(ends))


# What a server writes to standard error, as lines for the operator: bounded in length and number. Pure.

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


# The longest message of a server: a picture of a few megabytes, in base64.
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
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
            self._receiver.lost("its process ended" + ("" if status is None else f" with status {status}"))
