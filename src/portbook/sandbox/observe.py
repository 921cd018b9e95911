"""The program that starts a server and notes what it touches: files, ports, memory, processes.

It runs alone, as `python observe.py NOTES COMMAND…`, and imports nothing of Portbook. The kernel stops the
server at every system call that names a file or an address, tells us of it, and goes on when we have noted it
(seccomp, user notification). NOTES gets a line of JSON for each thing that was touched, once.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import signal
import socket
import struct
import sys
from typing import Any, NamedTuple

__all__ = ["can_observe", "main"]


class _Machine(NamedTuple):
    """The numbers of system calls on one kind of processor; -1 where it has none."""

    arch: int
    seccomp: int
    calls: dict[str, int]


_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        {
            "open": 2,
            "connect": 42,
            "execve": 59,
            "truncate": 76,
            "rename": 82,
            "mkdir": 83,
            "rmdir": 84,
            "creat": 85,
            "link": 86,
            "unlink": 87,
            "symlink": 88,
            "openat": 257,
            "mkdirat": 258,
            "unlinkat": 263,
            "renameat": 264,
            "linkat": 265,
            "symlinkat": 266,
            "renameat2": 316,
            "execveat": 322,
            "openat2": 437,
        },
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        {
            "mkdirat": 34,
            "unlinkat": 35,
            "symlinkat": 36,
            "linkat": 37,
            "renameat": 38,
            "truncate": 45,
            "openat": 56,
            "connect": 203,
            "execve": 221,
            "renameat2": 276,
            "execveat": 281,
            "openat2": 437,
        },
    ),
}

# Where a call that changes a folder names what it changes: in an argument with the descriptor of a folder
# (None: the working folder), and one with a path.
_CHANGES: dict[str, tuple[tuple[int | None, int], ...]] = {
    "truncate": ((None, 0),),
    "creat": ((None, 0),),
    "mkdir": ((None, 0),),
    "rmdir": ((None, 0),),
    "unlink": ((None, 0),),
    "rename": ((None, 0), (None, 1)),
    "link": ((None, 1),),
    "symlink": ((None, 1),),
    "mkdirat": ((0, 1),),
    "unlinkat": ((0, 1),),
    "renameat": ((0, 1), (2, 3)),
    "renameat2": ((0, 1), (2, 3)),
    "linkat": ((2, 3),),
    "symlinkat": ((1, 2),),
}

_NOTIFY, _ALLOW = 0x7FC00000, 0x7FFF0000
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_GO_ON = 1
_PR_SET_NO_NEW_PRIVS = 38
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
_AT_FDCWD = -100
_MAX_PATH = 4096
# How often memory and processes are looked at.
_SAMPLE_MS = 50
_NOT_RUN = 126


def can_observe() -> bool:
    """Return whether this kind of machine is known."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def main(arguments: list[str]) -> int:
    """Run the command to its end and return its status."""
    ours, theirs = socket.socketpair()
    server = os.fork()
    if server == 0:
        ours.close()
        _become(arguments[1:], theirs)
    theirs.close()
    # The server alone holds them: whoever reads sees that it has ended when they close.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    with open(arguments[0], "a", buffering=1) as notes:  # noqa: PTH123 - pathlib would double the time of a start
        if descriptors:
            _Observer(descriptors[0], server, notes).run()
    _, status = os.waitpid(server, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code  # a signal, as a shell says it


def _become(command: list[str], channel: socket.socket) -> None:
    """Turn this process into the server, observed."""
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    libc = ctypes.CDLL(None, use_errno=True)
    machine = _MACHINES[platform.machine()]
    program = _filter(machine)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener = libc.syscall(machine.seccomp, _SET_MODE_FILTER, _NEW_LISTENER, header)
    if listener < 0:
        os.write(2, f"cannot be observed: {os.strerror(ctypes.get_errno())}\n".encode())
        os._exit(_NOT_RUN)
    # Not `send_fds`, which imports a module: to open a file before anybody listens is to wait for ever.
    channel.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)
    channel.close()
    try:
        os.execvp(command[0], command)  # noqa: S606 - the operator's command, without a shell
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(_NOT_RUN)


def _filter(machine: _Machine) -> bytes:
    """Return the program by which the kernel picks the calls that we are told of."""
    numbers = sorted(machine.calls.values())
    steps = [
        (0x20, 0, 0, 4),  # load the kind of machine
        (0x15, 0, len(numbers) + 1, machine.arch),
        (0x20, 0, 0, 0),  # load the number of the call
        *((0x15, len(numbers) - at, 0, number) for at, number in enumerate(numbers)),
        (0x06, 0, 0, _ALLOW),
        (0x06, 0, 0, _NOTIFY),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


class _Observer:
    """Notes what one server, and all that it starts, touches."""

    def __init__(self, listener: int, server: int, notes: Any) -> None:
        self._listener = listener
        self._server = server
        self._notes = notes
        self._noted: set[tuple[str, str | int]] = set()
        self._names = {number: name for name, number in _MACHINES[platform.machine()].calls.items()}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._most = {"memory_bytes": 0, "processes": 0}
        self._pids: set[int] = {server}

    def run(self) -> None:
        """Serve notifications until no process is left that could cause one."""
        polling = select.poll()
        polling.register(self._listener, select.POLLIN)
        while True:
            events = polling.poll(_SAMPLE_MS)
            if not events:
                self._sample()
            for _, event in events:
                if event & select.POLLHUP:
                    return
                self._serve_one()

    def _serve_one(self) -> None:
        told = bytearray(80)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, told)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):  # it was killed meanwhile
                return
            raise
        number, pid, _, call, _, _, *arguments = struct.unpack("QIIiIQ6Q", told)
        self._pids.add(pid)
        # Whatever is not understood is only not noted: the call itself must go on.
        with contextlib.suppress(OSError, ValueError):
            self._look(self._names.get(call, ""), pid, arguments)
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, struct.pack("QqiI", number, 0, 0, _GO_ON))

    def _look(self, name: str, pid: int, arguments: list[int]) -> None:
        if name == "connect":
            self._look_at_address(pid, arguments)
        elif name in ("execve", "execveat"):
            at = None if name == "execve" else 0
            self._note_read(self._path(pid, arguments, at, 0 if at is None else 1))
        elif name in _CHANGES:
            for folder, path in _CHANGES[name]:
                self._note("write", self._path(pid, arguments, folder, path))
        else:
            self._look_at_open(name, pid, arguments)

    def _look_at_open(self, name: str, pid: int, arguments: list[int]) -> None:
        folder, path = (None, 0) if name == "open" else (0, 1)
        if name == "openat2":
            (flags,) = struct.unpack("Q", _memory(pid, arguments[2], 8))
        else:
            flags = arguments[path + 1]
        found = self._path(pid, arguments, folder, path)
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            self._note("write", found)
        if not flags & (os.O_WRONLY | os.O_PATH):
            self._note_read(found)

    def _look_at_address(self, pid: int, arguments: list[int]) -> None:
        address = _memory(pid, arguments[1], min(arguments[2], 128))
        family, port = struct.unpack_from("H", address)[0], int.from_bytes(address[2:4], "big")
        if family in (socket.AF_INET, socket.AF_INET6) and port and self._is_tcp(pid, arguments[0]):
            self._note("connect", port)
        elif family == socket.AF_UNIX and address[2:3] not in (b"", b"\0"):
            named = os.fsdecode(address[2:].split(b"\0")[0])
            path = os.path.realpath(os.path.join(os.readlink(f"/proc/{pid}/cwd"), named))  # noqa: PTH115, PTH118 - likewise
            if os.path.exists(path):  # noqa: PTH110 - likewise
                self._note("socket", path)

    def _is_tcp(self, pid: int, descriptor: int) -> bool:
        process = self._libc.syscall(_PIDFD_OPEN, pid, 0)
        if process < 0:
            return False
        try:
            copy = self._libc.syscall(_PIDFD_GETFD, process, ctypes.c_int(descriptor & 0xFFFFFFFF), 0)
        finally:
            os.close(process)
        if copy < 0:
            return True  # better one port too many in a proposal than one too few
        with socket.socket(fileno=copy) as known:
            return known.type == socket.SOCK_STREAM

    def _path(self, pid: int, arguments: list[int], folder: int | None, path: int) -> str:
        """Return the path that a call names, without links above it."""
        named = _text(pid, arguments[path])
        if not named:
            raise ValueError
        descriptor = _AT_FDCWD if folder is None else ctypes.c_int(arguments[folder] & 0xFFFFFFFF).value
        start = "cwd" if descriptor == _AT_FDCWD else f"fd/{descriptor}"
        whole = os.path.join(os.readlink(f"/proc/{pid}/{start}"), named)  # noqa: PTH115, PTH118 - likewise
        above, last = os.path.split(os.path.normpath(whole))
        return os.path.join(os.path.realpath(above), last)  # noqa: PTH118 - likewise

    def _note_read(self, path: str) -> None:
        real = os.path.realpath(path)
        if os.path.exists(real):  # noqa: PTH110 - likewise; a search along a path asks for much that is not there
            self._note("read", real)

    def _note(self, kind: str, what: str | int) -> None:
        if (kind, what) not in self._noted:
            self._noted.add((kind, what))
            self._notes.write(json.dumps([kind, what]) + "\n")

    def _sample(self) -> None:
        """Note how much memory the largest process has, and how many processes and threads there are."""
        tasks: dict[str, int] = {}
        for pid in tuple(self._pids):  # of threads, too: each of them names its process
            try:
                with open(f"/proc/{pid}/status") as file:  # noqa: PTH123 - likewise
                    status = dict(line.split(":", 1) for line in file if ":" in line)
            except OSError:
                self._pids.discard(pid)
                continue
            tasks[status["Tgid"]] = int(status["Threads"])
            self._raise("memory_bytes", int(status.get("VmData", "0 kB").split()[0]) * 1024)
        self._raise("processes", sum(tasks.values()))

    def _raise(self, name: str, value: int) -> None:
        if value > self._most[name]:
            self._most[name] = value
            self._notes.write(json.dumps([name, value]) + "\n")


def _memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123 - likewise
        memory.seek(address)
        return memory.read(size) or b""


def _text(pid: int, address: int) -> str:
    """Return the text at an address, read up to the end of its page at a time."""
    found = b""
    while len(found) < _MAX_PATH:
        piece = _memory(pid, address + len(found), 4096 - (address + len(found)) % 4096)
        end = piece.find(b"\0")
        if end >= 0 or not piece:
            return os.fsdecode(found + piece[: max(end, 0)])
        found += piece
    return os.fsdecode(found[:_MAX_PATH])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
