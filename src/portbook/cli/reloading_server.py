"""`portbook serve --reload`: a fresh process takes over the listening socket when a file changes.

The process that the operator started only watches. It keeps the socket, so that no connection is refused,
and starts a server in a child. Where a file changes, it starts a second child; once that one is ready, the
first ends its calls and goes. Where the second cannot start, the first stays in force.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from portbook.app.running_app import App
from portbook.cli.exit_codes import ExitCode
from portbook.cli.load_failure import load_failure
from portbook.cli.slow_reload import SlowReload
from portbook.cli.starting_server import Ready, StartingServer
from portbook.cli.stop_signals import ReplacedDoor, leave
from portbook.cli.terminal import say
from portbook.cli.watched_files import (
    POLL_S,
    Stamps,
    after_failure,
    stamps_of,
    without_changes_since,
)
from portbook.model import Kind

__all__ = ["ReloadingServer", "command_of_this_process", "leave_when_superseded"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Tell a server that a newer one has taken over: it ends its calls and goes, and does not speak of it. After
# the second, it tells its clients that the lists differ.
SUPERSEDED: Final = signal.SIGUSR1
LISTS_DIFFER: Final = signal.SIGUSR2


def leave_when_superseded(app: App, doors: Sequence[ReplacedDoor]) -> None:
    """Once a newer server has taken over: tell clients where the lists differ, and end the calls under way.

    A signal does not say which of them; clients were told only of lists that have something in them.
    """
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(SUPERSEDED, partial(leave, app, doors, lists_differ=False))
    loop.add_signal_handler(LISTS_DIFFER, partial(leave, app, doors, lists_differ=True))


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
            return self._server.returncode
        return ExitCode.INTERRUPTED if self._is_stopped else ExitCode.INVALID

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
