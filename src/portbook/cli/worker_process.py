"""`WorkerProcess`: one worker, as the process that supervises it sees it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from portbook.cli.worker_link import WORKER, WorkerPlace

__all__ = ["WorkerProcess"]

_CHUNK: Final = 65_536

# What waits to be sent to a worker that does not read: one that is stopped, by a debugger for example.
_MAX_UNSENT: Final = 1 << 20


class WorkerProcess:
    """A worker from its start to its end."""

    def __init__(
        self,
        command: Sequence[str],
        number: int,
        *,
        listener: int,
        tally: int,
        seat: int | None,
        tells: bool,
    ) -> None:
        """Start `command` as the worker with this number.

        Raises `OSError` where no process can be started.
        """
        self.number = number
        self.seat = seat
        self._ready_at: float | None = None
        self.ready: Any = None
        """What it said when it was ready."""
        self.problems: dict[str, str] = {}
        """The parts of it that fail, and why."""
        self.shown: object = None
        """What it was told last of all workers."""
        self.has_hung_up = False
        """Whether it has closed its end of the link: it ends, or has ended."""
        self.link, theirs = socket.socketpair()
        self._heard = b""
        self._unsent = b""
        place = WorkerPlace(
            number, listener, theirs.fileno(), tally, -1 if seat is None else seat, int(tells)
        )
        with theirs:
            try:
                self.process = subprocess.Popen(  # noqa: S603 - the command of this process itself
                    command,
                    stdin=subprocess.DEVNULL,
                    pass_fds=(listener, theirs.fileno(), tally),
                    # Ctrl-C reaches the whole group of a terminal, and the supervisor passes it on.
                    process_group=0,
                    env={**os.environ, WORKER: ",".join(map(str, place))},
                )
            except OSError:
                self.link.close()
                raise
        self.link.setblocking(False)

    @property
    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self.process.poll() is not None

    @property
    def served_s(self) -> float:
        """Return for how long it has been ready."""
        return 0.0 if self._ready_at is None else time.monotonic() - self._ready_at

    def note_ready(self, told: Any) -> None:
        """Note that it serves, and what it told of that."""
        self.ready, self._ready_at = told, time.monotonic()

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message, as soon as the worker reads."""
        if len(self._unsent) < _MAX_UNSENT:
            self._unsent += json.dumps(message).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the worker reads it."""
        with contextlib.suppress(OSError):  # it has ended, or does not read
            while self._unsent:
                self._unsent = self._unsent[self.link.send(self._unsent) :]

    def heard(self) -> Iterator[Any]:
        """Yield what it has told since the last call."""
        with contextlib.suppress(OSError):
            while data := self.link.recv(_CHUNK):
                self._heard += data
            self.has_hung_up = True
        *lines, self._heard = self._heard.split(b"\n")
        yield from map(json.loads, lines)

    def close(self) -> None:
        """Close the link to a worker that has ended."""
        self.link.close()
