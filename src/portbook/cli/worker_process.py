"""`WorkerProcess`: one worker, as the process that supervises it sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from portbook.cli.exit_codes import ExitCode
from portbook.cli.output_and_errors import say, speak_as
from portbook.cli.stderr_queue import drain_output
from portbook.doors.http.server.listeners_of_workers import ConnectionTally
from portbook.model import JSONObject

__all__ = ["WORKER", "Command", "WorkerLink", "WorkerPlace", "WorkerProcess", "WorkerState"]

# `WorkerLink`: what a worker hears from the process that supervises it, and what it tells that process.
#
# Both write lines of JSON to one pair of sockets. The link ends when either process ends, for whatever
# reason: a worker whose supervisor is gone finishes its calls and ends, too.

# Set for a worker alone: the fields of its `WorkerPlace`, with commas between them.
WORKER: Final = "_PORTBOOK_WORKER"

# How often a worker looks whether it can still do its work, and tells where that has changed.
_REPORT_S: Final = 2.0


class Command:
    """What a supervisor tells a worker to do."""

    STOP: Final = "stop"
    """Finish the calls in flight, and end."""
    LEAVE: Final = "leave"
    """The same; a new worker has taken over, so tasks may come to their end."""
    LEAVE_CHANGED: Final = "leave changed"
    """The same; what the new one lists differs."""
    END: Final = "end"
    """End now."""


class WorkerPlace(NamedTuple):
    """What a worker is given when it starts."""

    number: int
    """Which of the workers it is, from 1."""
    listener: int
    """The descriptor of the socket that all workers listen at."""
    link: int
    """The descriptor of the link to the supervisor."""
    tally: int
    """The descriptor of the memory of the `ConnectionTally`."""
    seat: int
    """Its place in the tally; negative for none."""
    tells: int
    """1 if it tells the operator what is doubtful in the settings: one worker does it for all."""


class WorkerState(NamedTuple):
    """How one worker is doing."""

    worker: int
    """Its number."""
    state: Literal["starting", "ready", "restarting"]
    restarts: int
    """How often it was started again."""
    problems: dict[str, str]
    """The parts of it that fail, and why."""


class WorkerLink:
    """The link, in the worker."""

    def __init__(self, place: WorkerPlace) -> None:
        self.place = place
        self._socket = socket.socket(fileno=place.link)
        self._sending = threading.Lock()
        self._workers: list[WorkerState] = []
        self._heed: Callable[[str], None] | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    @classmethod
    def of_environment(cls) -> WorkerLink | None:
        """Return the link of this process, or None; what it starts itself does not see it."""
        given = os.environ.pop(WORKER, None)
        if given is None:
            return None
        place = WorkerPlace(*map(int, given.split(",")))
        for descriptor in (place.listener, place.link, place.tally):
            os.set_inheritable(descriptor, False)
        link = cls(place)
        speak_as(link.name)
        return link

    @property
    def name(self) -> str:
        """Return what this worker calls itself on the standard error that it shares."""
        return f"worker {self.place.number}"

    @property
    def tells_doubts(self) -> bool:
        """Return whether this worker prints what is doubtful in the settings."""
        return bool(self.place.tells)

    def tally(self) -> ConnectionTally:
        """Return the tally of connections, with the place of this worker in it."""
        return ConnectionTally(self.place.tally, None if self.place.seat < 0 else self.place.seat)

    def start(self) -> None:
        """Listen, from now on and whatever this process does; until `heed`, a command ends it at once."""
        self._thread = threading.Thread(target=self._listen, name="portbook-supervisor-link", daemon=True)
        self._thread.start()

    def heed(self, obey: Callable[[str], None]) -> None:
        """Call `obey` with each command, in this event loop."""
        loop = asyncio.get_running_loop()

        def later(command: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and this process is about to
                loop.call_soon_threadsafe(obey, command)

        self._heed = later

    def tell_ready(self, served: str, lists: Mapping[Any, str], policy: str) -> None:
        """Tell the supervisor that this worker serves: how much, and the digests of its lists and policy."""
        self._tell({"ready": {"served": served, "lists": dict(lists), "policy": policy}})

    def warn(self, text: str) -> None:
        """Let the supervisor print a warning, which several workers may have; without it, print it here."""
        if not self._tell({"warning": text}):
            say(f"warning: {text}")

    def report(self, check: Callable[[], Any]) -> None:
        """Tell the supervisor from now on which parts fail: `check` is awaited for them."""
        self._reporting = asyncio.get_running_loop().create_task(self._report(check))

    async def stop_reporting(self) -> None:
        """Stop telling which parts fail: they are about to be closed."""
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.wait((self._reporting,))

    def close(self) -> None:
        """Hear no more commands: all is done."""
        self._heed = _ignore
        with contextlib.suppress(OSError):  # the supervisor was first
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()
        self._socket.close()

    # -- for `/health`

    def problem(self) -> str | None:
        """Return which part of a different worker fails, None if none does."""
        found = [
            f"worker {each.worker}: {name}: {problem}"
            for each in self._workers
            if each.worker != self.place.number
            for name, problem in each.problems.items()
        ]
        return "; ".join(found) or None

    def as_data(self) -> JSONObject:
        """Return how each worker is doing, as JSON."""
        return {
            "wanted": len(self._workers),
            "ready": sum(each.state == "ready" for each in self._workers),
            "each": [
                {"worker": each.worker, "state": each.state, "restarts": each.restarts}
                for each in self._workers
            ],
        }

    async def _report(self, check: Callable[[], Any]) -> None:
        told: dict[str, str] = {}
        while True:
            found = {name: problem for name, problem in (await check()).items() if problem is not None}
            if found != told:
                told = found
                self._tell({"problems": found})
            await asyncio.sleep(_REPORT_S)

    def _tell(self, message: JSONObject) -> bool:
        """Send a message; return whether that was possible: not if the supervisor has long read nothing."""
        line = json.dumps(message).encode() + b"\n"
        try:
            with self._sending:
                self._socket.sendall(line[self._socket.send(line, socket.MSG_DONTWAIT) :])
        except OSError:
            return False
        return True

    def _listen(self) -> None:
        try:
            with self._socket.makefile("rb") as lines:
                for line in lines:
                    self._hear(json.loads(line))
        except OSError:  # the same as its end
            pass
        if self._heed is not _ignore:
            said = "the process that supervises the workers is gone; finishing calls in flight"
            self._obey(Command.STOP, said)

    def _hear(self, message: Any) -> None:
        if "workers" in message:
            self._workers = [WorkerState(*each) for each in message["workers"]]
        elif "do" in message:
            self._obey(str(message["do"]))

    def _obey(self, command: str, said: str | None = None) -> None:
        if command == Command.END:  # now, whatever the loop does
            drain_output()
            os._exit(ExitCode.INTERRUPTED)
        if said is not None:
            say(said)
        if self._heed is None:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            self._heed(command)


def _ignore(_command: str) -> None:
    """Do nothing: the worker has ended its work."""


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
