"""`portbook serve --reload`: a fresh process takes over the listening socket when a file changes.

The process that the operator started only watches. It keeps the socket, so that no connection is refused,
and starts a server in a child. Where a file changes, it starts a second child; once that one is ready, the
first ends its calls and goes. Where the second cannot start, the first stays in force.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from portbook.app.assemble import App
from portbook.cli.inherited_socket import TAKE_OVER
from portbook.cli.served_lists import LISTED
from portbook.cli.stop_signals import Door
from portbook.cli.terminal import say
from portbook.cli.watched_files import Stamps, stamps_of
from portbook.model import Kind
from portbook.tools.toolset import Changed

__all__ = [
    "ReloadingServer",
    "command_of_this_process",
    "leave_when_superseded",
    "tell_ready",
    "without_changes_since",
]

_POLL_S: Final = 0.25
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Tells a server that a newer one serves different lists: it ends as after SIGTERM, and tells its clients.
SUPERSEDED: Final = signal.SIGUSR1


def tell_ready(descriptor: int, files: Sequence[Path], lists: Mapping[Kind, str]) -> None:
    """Tell the process that watches that this one serves, from which files, and which lists."""
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        json.dump({"files": [str(path) for path in files], "lists": lists}, pipe)


def leave_when_superseded(app: App, doors: Sequence[Door]) -> None:
    """Once a newer server has taken over: tell clients that the lists differ, and end the calls under way.

    A signal does not say which of them; clients were told only of lists that have something in them.
    """

    def leave() -> None:
        for kind in LISTED:
            if app.catalog.of(kind):
                app.changes.publish(Changed(kind))
        app.approvals.stop_waiting()
        for door in doors:
            door.stop()

    asyncio.get_running_loop().add_signal_handler(SUPERSEDED, leave)


class ReloadingServer:
    """Keeps a server of the newest files that can be served."""

    def __init__(self, listener: socket.socket, command: Sequence[str]) -> None:
        """Serve `listener` with processes that `command` starts."""
        self._listener = listener
        self._command = command
        self._stamps: Stamps = {}
        self._lists: dict[Kind, str] = {}
        self._server: subprocess.Popen[bytes] | None = None
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._stopped: int | None = None

    def run(self) -> int:
        """Serve until a signal; return the exit code of the last server."""
        for number in _SIGNALS:
            signal.signal(number, self._forward)
        self._take_up()
        while self._server is not None and self._server.poll() is None:
            time.sleep(_POLL_S)
            self._leaving = [each for each in self._leaving if each.poll() is None]
            if self._stopped is None and stamps_of(list(self._stamps)) != self._stamps:
                self._take_up()
        for each in self._leaving:
            each.wait()
        return 2 if self._server is None else self._server.returncode

    def _take_up(self) -> None:
        """Start a server from the files as they are; the one before stays where it cannot be started."""
        started = time.time_ns()
        ours, theirs = os.pipe()
        descriptors = (self._listener.fileno(), theirs)
        new = subprocess.Popen(  # noqa: S603 - the command of this process itself
            self._command,
            pass_fds=descriptors,
            # Bytecode is as old as a second: of two quick changes, it could be that of the first.
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                TAKE_OVER: ",".join(map(str, descriptors)),
            },
        )
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            told = pipe.read()  # ends with the message, or with the process
        if not told:
            new.wait()
            self._stamps = stamps_of(list(self._stamps))  # until the next change
            if self._server is not None:
                say("reload failed; what was served before stays in force")
            return
        before, self._server = self._server, new
        ready = json.loads(told)
        self._stamps = without_changes_since(started, stamps_of([Path(name) for name in ready["files"]]))
        lists, self._lists = self._lists, ready["lists"]
        if before is not None:
            say("reloaded: the changed files are in force")
            before.send_signal(SUPERSEDED if lists != self._lists else signal.SIGTERM)
            self._leaving.append(before)

    def _forward(self, number: int, _: object) -> None:
        if number != signal.SIGHUP:
            self._stopped = number
        if self._server is not None:
            self._server.send_signal(number)


def without_changes_since(started: int, stamps: Stamps) -> Stamps:
    """Return the stamps, of which those count as changed that a server may have read too early."""
    now = time.time_ns()
    return {
        path: None if stamp is not None and started <= stamp[0] <= now else stamp
        for path, stamp in stamps.items()
    }


def command_of_this_process() -> list[str]:
    """Return the command that starts a server like this one, without watching."""
    return [sys.executable, "-m", "portbook", *(each for each in sys.argv[1:] if each != "--reload")]
