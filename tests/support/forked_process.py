"""Starts `python -m portbook` as a fork of a process that has imported it, where that makes no difference.

Most processor time of a short command goes into the start of Python and its imports. What is forked is a
process of its own with all that a test can see from outside: number, parent, arguments, environment, folder,
descriptors, signals, exit status. PORTBOOK_TEST_REAL_STARTS=1 starts Python anew each time.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, Final

from support.fork_server import CLONE, LENGTH, Start

__all__ = ["REAL_STARTS", "ForkedProcess", "can_fork", "forked", "is_known_machine", "run", "server_number"]

REAL_STARTS: Final = "PORTBOOK_TEST_REAL_STARTS"
_MODULES: Final = frozenset({"portbook", "portbook.cli.adapter", "mcp"})
# What Python and its libraries read before the first line of Portbook runs.
_READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "OPENSSL_", "TZ")


class _Server:
    """The fork server of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self.environment = _read_at_start(os.environ)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._end)

    def start(self, start: Start, streams: list[int]) -> int:
        """Return the number of a new child of this process."""
        body = json.dumps(asdict(start)).encode()
        with self._lock:
            socket.send_fds(self._socket, [LENGTH.pack(len(body))], streams)
            self._socket.sendall(body)
            answer = self._socket.recv(LENGTH.size)
        assert answer, "the fork server has ended"
        return int(LENGTH.unpack(answer)[0])

    def _end(self) -> None:
        self._socket.close()
        self.process.wait()


_starting: Final = threading.Lock()


def _server() -> _Server:
    with _starting:  # tests start processes from threads, too
        return _the_server()


@cache
def _the_server() -> _Server:
    return _Server()


@cache
def is_known_machine() -> bool:
    """Whether the fork server works here."""
    return sys.platform == "linux" and platform.machine() in CLONE and platform.libc_ver()[0] == "glibc"


def can_fork() -> bool:
    """Whether processes are forked on this machine, and nobody wants otherwise."""
    return is_known_machine() and not os.environ.get(REAL_STARTS)


def server_number() -> int | None:
    """The number of the fork server's process, if there is one."""
    return _server().process.pid if _the_server.cache_info().currsize else None


def forked(start: Start, streams: list[int]) -> int | None:
    """Return the number of a new child of this process; nothing where only a start anew is the same."""
    is_same = _read_at_start(start.environment) == _server().environment
    return _server().start(start, streams) if is_same else None


class ForkedProcess(subprocess.Popen[Any]):
    """A process that is forked where that makes no difference, and started anew elsewhere."""

    def __init__(self, command: Sequence[str | bytes], **options: Any) -> None:
        self.is_forked = _can_be_forked(command, options)
        super().__init__(command, **options)

    def _execute_child(self, *given: Any) -> None:
        if not self.is_forked:
            _start_anew(self, *given)
            return
        asked = _PARAMETERS.bind(self, *given).arguments
        streams = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
        environment = os.environ if asked["env"] is None else asked["env"]
        start = Start(
            [os.fsdecode(each) for each in asked["args"]],
            os.fsdecode(asked["cwd"] or Path.cwd()),
            {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()},
            asked["start_new_session"],
        )
        # -1 is a stream of this process itself.
        self.pid = _server().start(start, [own if each == -1 else each for own, each in enumerate(streams)])
        self._child_created = True
        _close_pipes(self, *(asked[name] for name in _PIPES))


def run(
    command: Sequence[str | bytes],
    *,
    input: Any = None,  # the name that subprocess gives it
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Do what `subprocess.run` does."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ForkedProcess(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


# Popen's own, which it keeps to itself; every Python that Portbook runs on has them.
_POPEN: Final[Any] = subprocess.Popen
_start_anew: Final[Any] = _POPEN._execute_child
_close_pipes: Final[Any] = _POPEN._close_pipe_fds
_PARAMETERS: Final = signature(_start_anew)
_PIPES: Final = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_OPTIONS: Final = frozenset(
    {"bufsize", "cwd", "encoding", "env", "errors", "start_new_session", "stderr", "stdin", "stdout", "text"}
)


def _can_be_forked(command: Sequence[str | bytes], options: Mapping[str, Any]) -> bool:
    return (
        can_fork()
        and tuple(command[:2]) == (sys.executable, "-m")
        and command[2] in _MODULES
        and _OPTIONS.issuperset(options)
        and Path(options.get("cwd") or os.curdir).is_dir()
        and _read_at_start(options.get("env") or os.environ) == _server().environment
    )


def _read_at_start(environment: Mapping[Any, Any]) -> dict[str, str]:
    named = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    return {name: value for name, value in named.items() if name.startswith(_READ_AT_START)}
