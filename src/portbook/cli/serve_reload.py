"""`portbook serve --reload`: changed files are taken up, over HTTP and over STDIO.

Over HTTP, the process that the operator started only watches. It keeps the socket, so that no connection is
refused, and starts a server in a child. Where a file changes, it starts a second child; once that one is
ready, the first ends its calls and goes. Where the second cannot start, the first stays in force.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.cli.exit_codes import ExitCode, exit_code_of_program
from portbook.cli.options import START_ERRORS
from portbook.cli.output_and_errors import problems_of, say
from portbook.cli.reload_trial_and_watched_files import (
    POLL_S,
    SlowReload,
    Stamps,
    after_failure,
    load_failure,
    python_folders,
    stamps_of,
    try_to_load,
    watched_files,
    without_changes_since,
)
from portbook.cli.stop_and_reload_signals import (
    ReplacedDoor,
    changed_lists,
    leave,
    on_signal,
    served_lists,
)
from portbook.doors.ndjson import NdjsonDoor
from portbook.model import Kind
from portbook.settings import Settings
from portbook.tools.toolset import Changed
from portbook.tools.toolset_loader import SetAsideModules

__all__ = [
    "TAKE_OVER",
    "Inherited",
    "Ready",
    "ReloadingServer",
    "ReloadingStdio",
    "StartingServer",
    "command_of_this_process",
    "leave_when_superseded",
    "tell_ready",
]

# The descriptors that a watching process gives to the server that it starts.

# Set for the server alone: the descriptors, with commas between them.
TAKE_OVER: Final = "_PORTBOOK_TAKE_OVER"


class Inherited(NamedTuple):
    """A socket that listens already, a pipe to write to once ready, and one that ends with the watcher."""

    listener: int
    pipe: int
    lifeline: int

    @classmethod
    def of_environment(cls) -> Inherited | None:
        """Return the descriptors of this process, or None; what it starts itself does not see them."""
        given = os.environ.pop(TAKE_OVER, None)
        if given is None:
            return None
        inherited = cls(*map(int, given.split(",")))
        for descriptor in inherited:
            os.set_inheritable(descriptor, False)
        return inherited

    def end_with_the_watcher(self) -> None:
        """From now on, whatever this process does, end as after SIGTERM once the watching process is gone."""
        threading.Thread(target=self._wait_for_the_end, name="portbook-lifeline", daemon=True).start()

    def _wait_for_the_end(self) -> None:
        os.read(
            self.lifeline, 1
        )  # nobody writes: it returns when the last descriptor of the other end is closed
        os.kill(os.getpid(), signal.SIGTERM)


# A server in a process of its own, from its start until it says that it is ready.

_CHUNK: Final = 65_536  # what a pipe holds


class Ready(NamedTuple):
    """What a server tells once it serves: the files that it is made from, what it lists, its address."""

    files: list[Path]
    lists: dict[Kind, str]
    address: dict[str, str | int | None]
    """The settings that say where to listen, and their values."""


def tell_ready(descriptor: int, ready: Ready) -> None:
    """Tell the process that watches that this one serves."""
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        json.dump({**ready._asdict(), "files": [str(path) for path in ready.files]}, pipe)


class StartingServer:
    """Waits for a new process without being held up by it: an import may take long, or never end."""

    def __init__(self, command: Sequence[str], listener: int, lifeline: int) -> None:
        """Start `command`; it inherits the socket that listens, and a pipe that ends with this process."""
        self.started = time.time_ns()
        self._told = b""
        self._pipe, theirs = os.pipe()
        descriptors = (listener, theirs, lifeline)
        self.process = subprocess.Popen(  # noqa: S603 - the command of this process itself
            command,
            pass_fds=descriptors,
            # Ctrl-C reaches the whole group of a terminal, and this process passes it on: once is enough.
            process_group=0,
            # Bytecode is as old as a second: of two quick changes, it could be that of the first.
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                TAKE_OVER: ",".join(map(str, descriptors)),
            },
        )
        os.close(theirs)

    def has_told(self, seconds: float) -> bool:
        """Wait so long; return whether it has said everything, or has ended before it could."""
        readable, _, _ = select.select([self._pipe], [], [], seconds)
        if not readable:
            return False
        self._told += (data := os.read(self._pipe, _CHUNK))
        return not data

    def settle(self) -> Ready | None:
        """Return what it told; None if it has ended without a word. Once `has_told`."""
        os.close(self._pipe)
        if not self._told:
            self.process.wait()
            return None
        told = json.loads(self._told)
        return Ready(**told | {"files": [Path(name) for name in told["files"]]})

    def give_up(self) -> None:
        """End it: nobody waits for it any more."""
        os.close(self._pipe)
        # Not killed: if it has just become ready, it has connections, and ends them first.
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Tell a server that a newer one has taken over: it ends its calls and goes, and does not speak of it. After
# the second, it tells its clients that the lists differ.
SUPERSEDED: Final = signal.SIGUSR1
LISTS_DIFFER: Final = signal.SIGUSR2


def leave_when_superseded(app: App, doors: Sequence[ReplacedDoor]) -> None:
    """Once a newer server has taken over: tell clients where the lists differ, and end the calls under way.

    A signal does not say which of them; clients were told only of lists that have something in them.
    """
    on_signal(SUPERSEDED, partial(leave, app, doors, lists_differ=False))
    on_signal(LISTS_DIFFER, partial(leave, app, doors, lists_differ=True))


class ReloadingServer:
    """Keeps a server of the newest files that can be served."""

    def __init__(self, listener: socket.socket, command: Sequence[str]) -> None:
        """Serve `listener` with processes that `command` starts."""
        self._listener = listener
        self._command = command
        # The other end stays open as long as this process lives, however it ends.
        self._lifeline, self._life = os.pipe()
        self._stamps: Stamps = {}
        self._lists: dict[Kind, str] = {}
        self._address: dict[str, str | int | None] = {}
        self._server: subprocess.Popen[bytes] | None = None
        self._starting: StartingServer | None = None
        self._slow = SlowReload()
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._signals: list[int] = []
        self._passed_on: set[int] = set()
        self._is_stopped = False

    def run(self) -> int:
        """Serve until a signal; return the exit code of the last server."""
        for number in _SIGNALS:
            # Noted, and passed on between two steps: in the midst of one, a process could be missed.
            signal.signal(number, lambda number, _: self._signals.append(number))
        self._start()
        while self._starting is not None or self._is_serving() or self._leaving:
            self._wait()
            while self._signals:
                self._pass_on(self._signals.pop(0))
            self._leaving = [each for each in self._leaving if each.poll() is None]
            if self._is_serving() and not self._is_stopped and stamps_of(list(self._stamps)) != self._stamps:
                self._start()
        if self._server is not None:
            return self._exit_code(self._server.returncode)
        return ExitCode.INTERRUPTED if self._is_stopped else ExitCode.INVALID

    def _exit_code(self, status: int) -> int:
        """Return the code for how the last server ended.

        A signal that was passed on ends it at once before it handles signals, and once its loop is closed.
        """
        return ExitCode.SUCCESS if -status in self._passed_on else exit_code_of_program(status)

    def _is_serving(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def _start(self) -> None:
        """Start a server from the files as they are, instead of one that is not ready yet."""
        if self._starting is not None:
            self._starting.give_up()
            self._leaving.append(self._starting.process)
        self._stamps = stamps_of(list(self._stamps))
        self._starting = StartingServer(self._command, self._listener.fileno(), self._lifeline)
        self._slow = SlowReload()

    def _wait(self) -> None:
        """Wait a moment, or until the server that starts is ready or has failed."""
        if self._starting is None:
            time.sleep(POLL_S)
        elif self._starting.has_told(POLL_S):
            starting, self._starting = self._starting, None
            ready = starting.settle()
            if ready is None:
                self._keep(starting.process.returncode)
            else:
                self._take_over(starting, ready)
        elif self._server is not None:
            self._slow.tell_once()

    def _keep(self, code: int) -> None:
        """Let the server that is there go on: the new one could not start, and ended with `code`."""
        self._stamps = after_failure(self._stamps)
        if self._server is None or self._is_stopped:
            return
        if (failure := load_failure(code)) is not None:
            say(failure)
        say("reload failed; what was served before stays in force")

    def _take_over(self, new: StartingServer, ready: Ready) -> None:
        before, self._server = self._server, new.process
        self._stamps = without_changes_since(new.started, stamps_of(ready.files))
        lists, self._lists = self._lists, ready.lists
        if before is None:
            self._address = ready.address
        else:
            say("reloaded: the changed files are in force")
            moved = [name for name, value in ready.address.items() if self._address[name] != value]
            if moved:
                say(f"warning: {' and '.join(moved)} changed; restart to listen there")
            before.send_signal(LISTS_DIFFER if lists != self._lists else SUPERSEDED)
            self._leaving.append(before)

    def _pass_on(self, number: int) -> None:
        if number == signal.SIGHUP:  # for whoever serves; a server that starts reads the newest rules
            if self._server is not None:
                self._server.send_signal(number)
            return
        is_second, self._is_stopped = self._is_stopped, True
        self._passed_on.add(number)
        for process in self._processes():
            process.send_signal(number)
        if is_second and self._starting is not None:
            self._starting.process.kill()  # whatever its import does with a signal

    def _processes(self) -> Iterator[subprocess.Popen[bytes]]:
        yield from self._leaving
        if self._server is not None:
            yield self._server
        if self._starting is not None:
            yield self._starting.process


def command_of_this_process() -> list[str]:
    """Return the command that starts a server like this one, without watching."""
    return [sys.executable, "-m", "portbook", *(each for each in sys.argv[1:] if each != "--reload")]


# `portbook serve --stdio --reload`: changed files are taken up on the connection that the client has.
#
# The toolsets are imported anew beside the old ones, into a second boundary. What the client sends next is
# answered by that one; calls under way end in the old one, which is closed after them. Where the new one
# cannot be made, the old one stays in force. A process of its own tries that first: an import may take
# long, or never end, and the client is answered meanwhile.

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class ReloadingStdio:
    """Keeps the newest files that can be served in force on one connection."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        door: NdjsonDoor,
        command: Sequence[str],
        load: Callable[[], Settings],
        on_new: Callable[[App], None],
    ) -> None:
        """Watch the files of `app`; `command` starts a server like this one.

        `load` reads the settings again, `on_new` is told of each new app.
        """
        self.app = app
        """The one in force."""
        self._settings = settings
        self._door = door
        self._command = command
        self._load = load
        self._on_new = on_new
        self._stamps: Stamps = stamps_of(watched_files(settings))
        self._leaving: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch from now on."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        """Stop watching, and close every app but the one in force; their calls have ended."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        await asyncio.gather(*self._leaving)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            if self._has_changed():
                self._stamps = stamps_of(list(self._stamps))
                failure = await self._tried()
                if failure is None:
                    # Only what was tried is taken up: a file may have changed while its trial ended.
                    if not self._has_changed():
                        self._take_up()
                elif failure:
                    sys.stderr.write(failure)
                    self._keep()

    def _has_changed(self) -> bool:
        return stamps_of(list(self._stamps)) != self._stamps

    async def _tried(self) -> str | None:
        """Return why the files as they are cannot be loaded, None if they can.

        Nothing, and no longer waited for, where they change before it is known.
        """
        trial = asyncio.get_running_loop().create_task(try_to_load(self._command))
        slow = SlowReload()
        try:
            while not (await asyncio.wait({trial}, timeout=POLL_S))[0]:
                slow.tell_once()
                if self._has_changed():
                    return ""
            return trial.result()
        finally:
            trial.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await trial

    def _take_up(self) -> None:
        """Put the files as they are into force, or keep what is."""
        started = time.time_ns()
        folders = python_folders(self._settings)
        old_modules = SetAsideModules(folders)
        try:
            with _signals_interrupt():
                settings = self._load()
                new = assemble(
                    settings, is_exposed=False, warn=lambda text: say(f"warning: {text}"), is_server=True
                )
        except _Interrupted:
            old_modules.put_back(folders)
            return
        except (*START_ERRORS, OSError) as error:
            old_modules.put_back(folders)
            for problem in problems_of(error):
                say(f"error: {problem}")
            self._keep()
            return
        for warning in new.warnings:
            say(f"warning: {warning}")
        self._settings = settings
        self._stamps = without_changes_since(started, stamps_of(watched_files(settings)))
        self._put_in_force(new)
        say("reloaded: the changed files are in force")

    def _keep(self) -> None:
        self._stamps = after_failure(self._stamps)
        say("reload failed; what was served before stays in force")

    def _put_in_force(self, new: App) -> None:
        old, self.app = self.app, new
        changed = changed_lists(served_lists(old.catalog), served_lists(new.catalog))
        tasks_end = new.take_over(old)
        calls_end = self._door.move_to(new.boundary)
        new.start()
        self._on_new(new)
        for kind in changed:
            # Of the old one, too: streams of subscriptions hear of it, and end with it.
            old.changes.publish(Changed(kind))
            new.changes.publish(Changed(kind))
        old.changes.close()
        leaving = asyncio.get_running_loop().create_task(_close_after(old, calls_end, tasks_end))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)


async def _close_after(old: App, *ends: Coroutine[Any, Any, None]) -> None:
    for end in ends:
        await end
    await old.close()


class _Interrupted(BaseException):
    """A signal came while toolsets were imported. No `except Exception` of theirs stops it."""


@contextlib.contextmanager
def _signals_interrupt() -> Generator[None]:
    """Let the signals that stop a server interrupt what runs in the event loop's thread.

    The loop hears of the same signal afterwards, and stops the door: it was only told, and had no turn.
    """
    before = {number: signal.signal(number, _interrupt) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    raise _Interrupted
