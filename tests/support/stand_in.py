"""A program `portbook` for shells and for clients of others, which start it by its path.

It stands in for the real one: it has the process of the tests ask the fork server for a Portbook with its
own arguments, environment, folder and standard streams, hands on signals, and ends as that one ends; if it is
killed, so is that one. The first start of each verb in a process of the tests is real, and all are with
PORTBOOK_TEST_REAL_STARTS=1.
What looks at its parent or at its process group needs a real start.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support import forked_process
from support.fork_server import LENGTH, STREAMS, Start

__all__ = ["portbook_program"]

_FORKED: Final = b"f"
_REAL: Final = b"r"
_GRACE_S: Final = 30.0
_started: Final = set[str]()
"""The verbs that were started for real."""

# Nothing that Python has to read from a file: it starts in a tenth of what Portbook takes.
_PROGRAM: Final = """#!{python} -IS
import _signal, _socket, array, posix, sys

asked = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
asked.connect({address!r})
given = [name + b"=" + value for name, value in posix.environ.items()]
said = [posix.getcwdb(), b"%d" % len(sys.argv[1:])]
said += [each.encode(sys.getfilesystemencoding(), "surrogateescape") for each in sys.argv[1:]]
body = b"\\0".join(said + given)
streams = array.array("i", [0, 1, 2]).tobytes()
asked.sendmsg([len(body).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
signals = (1, 2, 3, 10, 12, 15)
_signal.pthread_sigmask(_signal.SIG_BLOCK, signals)  # what is started may be sooner than the handlers
asked.sendall(body)
if asked.recv(1) == {real!r}:
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, signals)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    posix.execv({python!r}, [{python!r}, "-m", "portbook", *sys.argv[1:]])
# Sent by the system's own handler: one of Python's could come too late, when this waits already.
asked.settimeout(1_000_000)
_signal.set_wakeup_fd(asked.fileno(), warn_on_full_buffer=False)
for number in signals:
    if _signal.getsignal(number) != _signal.SIG_IGN:
        _signal.signal(number, lambda *_: None)
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, signals)
posix.closerange(0, 3)
code = int(asked.recv(8) or b"1")
if code < 0 and -code not in (9, 19):
    _signal.signal(-code, _signal.SIG_DFL)
if code < 0:
    posix.kill(posix.getpid(), -code)
posix._exit(code)
"""


@contextlib.contextmanager
def portbook_program(folder: Path) -> Iterator[Path]:
    """Write a program `portbook` into a folder; it works until the end of the block."""
    program = folder / "portbook"
    if not forked_process.can_fork():
        _write(program, f'#!/bin/sh\nexec "{sys.executable}" -m portbook "$@"\n')
        yield program
        return
    with socket.socket(socket.AF_UNIX) as listener:
        # A name in no folder, where a path could be too long.
        address = f"\0portbook-stand-in-{os.getpid()}-{id(listener)}"
        listener.bind(address)
        listener.listen(64)
        text = _PROGRAM.format(python=sys.executable, address=address, real=_REAL)
        _write(program, text)
        asked = threading.Thread(target=_answer_all, args=(listener,), name="stand-in")
        asked.start()
        try:
            yield program
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            asked.join(_GRACE_S)


def _write(program: Path, text: str) -> None:
    program.write_text(text, "utf-8")
    program.chmod(0o755)


def _answer_all(listener: socket.socket) -> None:
    """Answer each stand-in in a thread of its own until the listener is shut down."""
    answering: list[threading.Thread] = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            break
        answering.append(threading.Thread(target=_answer, args=(connection,), name="stand-in"))
        answering[-1].start()
    for each in answering:
        each.join(_GRACE_S)


def _answer(connection: socket.socket) -> None:
    # Whoever is killed while it asks needs no answer.
    with connection, contextlib.suppress(ConnectionError):
        asked = _asked(connection)
        if asked is None:
            return
        start, streams = asked
        try:
            verb = start.command[3] if len(start.command) > 3 else ""
            is_first = verb not in _started
            _started.add(verb)
            process = None if is_first else forked_process.forked(start, streams)
        finally:
            for stream in streams:
                os.close(stream)
        if process is None:
            connection.sendall(_REAL)
        else:
            _attend(connection, process)


def _asked(connection: socket.socket) -> tuple[Start, list[int]] | None:
    """What a stand-in was started with; nothing where it ended before it had said so."""
    length, streams, _, _ = socket.recv_fds(connection, LENGTH.size, STREAMS, socket.MSG_CMSG_CLOEXEC)
    with connection.makefile("rb") as reading:
        size = LENGTH.unpack(length)[0] if length else 1
        body = reading.read(size)
    if len(body) < size:
        for stream in streams:
            os.close(stream)
        return None
    folder, count, *rest = (os.fsdecode(each) for each in body.split(b"\0"))
    arguments, variables = rest[: int(count)], rest[int(count) :]
    environment = dict(each.split("=", 1) for each in variables)
    return Start([sys.executable, "-m", "portbook", *arguments], folder, environment, False), streams


def _attend(connection: socket.socket, process: int) -> None:
    """Hand on the signals that a stand-in gets, and tell it how the process has ended."""
    ended = os.pidfd_open(process)
    try:
        with contextlib.suppress(ConnectionError):
            connection.sendall(_FORKED)
        watched: list[socket.socket | int] = [connection, ended]
        while ended not in (ready := select.select(watched, [], [])[0]):
            numbers = _received(connection) if connection in ready else b""
            if not numbers:
                watched.remove(connection)
            for number in numbers or [signal.SIGKILL]:
                signal.pidfd_send_signal(ended, number)
    finally:
        os.close(ended)
        _, status = os.waitpid(process, 0)
    connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(64)
    except ConnectionError:
        return b""
