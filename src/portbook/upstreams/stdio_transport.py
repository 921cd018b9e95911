"""`StdioTransport`: a server over its standard input and output, one message per line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from portbook.model import JSONObject
from portbook.upstreams.child_process import ChildProcess
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.stderr_lines import StderrLines
from portbook.upstreams.transport import MAX_ANSWER_BYTES, NotSent, Receiver
from portbook.wire.lines_and_size_limit import LineSplitter

__all__ = ["StdioTransport"]

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
            from portbook.sandbox.allowed_files_and_system_calls import NotConfinable, confined_command

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
