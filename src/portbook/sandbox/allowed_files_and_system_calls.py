"""`confined_command`: starts a server confined, with the files and the system calls that it may use."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from portbook.sandbox import confine
from portbook.sandbox.declared_sandbox import DeclaredSandbox

__all__ = [
    "ALWAYS_WRITABLE",
    "FILTERED_MACHINES",
    "NotConfinable",
    "always_readable",
    "confined_command",
    "kernel_filter",
    "problem_of_system",
]


class NotConfinable(Exception):
    """A server cannot be confined as asked; the message says why."""


def confined_command(
    command: Sequence[str], sandbox: DeclaredSandbox, environ: Mapping[str, str], folder: Path
) -> tuple[str, ...]:
    """Return the command that confines itself and then becomes `command`, started in `folder`.

    Raises `NotConfinable` where that cannot be had.
    """
    if problem := problem_of_system(limits_ports=sandbox.connect is not None):
        raise NotConfinable(problem)
    rules = {
        "read": [*always_readable(command, environ, folder), *_existing("read", sandbox.read)],
        "write": [*ALWAYS_WRITABLE, *_existing("write", sandbox.write)],
        "connect": sandbox.connect,
        "memory_bytes": None if sandbox.memory_mb is None else sandbox.memory_mb * 1024 * 1024,
        "processes": sandbox.processes,
        "filter": kernel_filter(
            platform.machine(),
            any_port=sandbox.connect is None,
            unix=any(path.is_socket() for path in sandbox.write),
        ).hex(),
    }
    return (sys.executable, "-I", "-S", confine.__file__, json.dumps(rules), *command)


def _existing(key: str, paths: Iterable[Path]) -> list[str]:
    for path in paths:
        if not path.exists():
            raise NotConfinable(f"sandbox.{key} names {path}, which does not exist")
    return [str(path) for path in paths]


# What a confined program may always read: itself, its interpreter, and what every program needs to run.

ALWAYS_READABLE: Final = (
    # the loader and its libraries
    *("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/lib"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives"),
    # certificates, and what TLS libraries read
    # (not their folders as a whole: private keys lie beside them)
    *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates"),
    *("/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust"),
    *("/etc/crypto-policies", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates"),
    # names and times
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/localtime", "/usr/share/zoneinfo", "/usr/share/locale"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
)
ALWAYS_WRITABLE: Final = ("/dev/null", "/dev/full")

# Variables that name files with certificates.
_CA_VARIABLES: Final = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
_PARTS_OF_A_PREFIX: Final = ("bin", "sbin", "lib", "lib64", "libexec")
_MAX_INTERPRETERS: Final = 4
_SHEBANG_BYTES: Final = 256


def always_readable(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return the paths that `command`, started in `folder`, may read whatever the settings say.

    Those that do not exist are left out.
    """
    named = (*ALWAYS_READABLE, *(environ.get(name, "") for name in _CA_VARIABLES))
    found = dict.fromkeys(path for path in named if path and Path(path).exists())
    # A virtual environment has programs that the Python it was made with has not.
    installed = (path for path in _of_program(command[0], environ, folder) if path.exists())
    found.update(dict.fromkeys(map(str, installed)))
    found.update(dict.fromkeys(str(path) for path in _named_files(command[1:], folder)))
    return tuple(found)


def _of_program(name: str, environ: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """Yield where a program is installed, and the interpreters that its first line names."""
    for _ in range(_MAX_INTERPRETERS):
        path = _found(name, environ, folder)
        if path is None:
            return
        for step in _steps(path):
            yield from _installation(step)
        interpreter = _interpreter(path)
        if interpreter is None:
            return
        name = interpreter


def _found(name: str, environ: Mapping[str, str], folder: Path) -> Path | None:
    if os.sep in name:
        path = folder / name
        return path if path.is_file() else None
    found = shutil.which(name, path=environ.get("PATH", os.defpath))
    return None if found is None else Path(found)


def _steps(path: Path) -> Iterator[Path]:
    """Yield a path and what each of its links leads to: `node` may be one to another installation."""
    seen: set[Path] = set()
    while path not in seen:
        seen.add(path)
        yield path
        if path.is_symlink():
            path = Path(os.path.normpath(path.parent / path.readlink()))
        elif path.parent.resolve() != path.parent:
            path = path.resolve()


def _installation(path: Path) -> Iterator[Path]:
    """Yield the prefix of a program in a `bin` folder, and of the one that made a virtual environment."""
    yield path
    if path.parent.name not in ("bin", "sbin"):
        return
    prefix = path.parent.parent
    if _is_too_wide(prefix):
        yield from (prefix / part for part in _PARTS_OF_A_PREFIX if (prefix / part).is_dir())
    else:
        yield prefix
    try:
        lines = (prefix / "pyvenv.cfg").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        key, _, value = line.partition("=")
        home = Path(value.strip())
        if key.strip() == "home" and home.is_dir():
            yield from _installation(home / path.name)


def _is_too_wide(prefix: Path) -> bool:
    """Return whether a person's own files lie below a prefix: those of `/bin`, `~/bin` and `~/.local/bin`."""
    home = Path.home()
    return prefix in (home, home / ".local") or prefix in home.parents


def _interpreter(path: Path) -> str | None:
    """Return the program that the first line of a script names, if it is one."""
    try:
        with path.open("rb") as file:
            first = file.read(_SHEBANG_BYTES).split(b"\n", 1)[0]
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def _named_files(arguments: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield the files that a command names: its script. Folders are data, and need to be granted."""
    for argument in arguments:
        path = folder / argument
        try:
            is_file = path.is_file()
        except (OSError, ValueError):
            continue
        if is_file:
            yield path


# `kernel_filter`: the program by which the kernel refuses what Landlock does not look at.
#
# Landlock limits `connect` on TCP sockets. Around it lead a TCP socket of the multipath kind, one whose first
# data is sent before it is connected (fast open), sockets of other families, and rings of requests that make
# sockets without a system call. The filter closes these ways:
#
# - an internet socket is TCP or UDP, unless every port is granted; no raw ones
# - a Unix socket is made only where one was granted
# - netlink is there for routes alone, which looking up a name needs
# - no fast open, no rings, and no calls of a different kind of machine, whose numbers mean something else


class _CallNumbers(NamedTuple):
    arch: int
    socket: int
    sendto: int
    sendmsg: int
    sendmmsg: int


FILTERED_MACHINES = {
    "x86_64": _CallNumbers(0xC000003E, 41, 44, 46, 307),
    "aarch64": _CallNumbers(0xC00000B7, 198, 206, 211, 269),
    "riscv64": _CallNumbers(0xC00000F3, 198, 206, 211, 269),
}
_IO_URING_SETUP = 425
# From here on, x86_64 has the calls of a second kind of machine.
_X32 = 0x40000000
_MSG_FASTOPEN = 0x20000000
# `socket` has it on Linux alone; this module is read everywhere.
_AF_NETLINK = 16
_KIND_OF_SOCKET = 0xF
_TCP, _UDP = (0, 6), (0, 17)

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_REFUSE, _UNKNOWN = _ERRNO | errno.EACCES, _ERRNO | errno.ENOSYS

# Where the kernel puts the number of a call, the kind of machine, and the arguments.
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16

# Codes of the filter's machine.
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_LEAST, _IF_SET = 0x15, 0x35, 0x45


class _Steps:
    """Steps of a filter, with labels in place of distances."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, str | None, str | None, int]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        self._labels[name] = len(self._steps)

    def load(self, offset: int) -> None:
        self._steps.append((_LOAD, None, None, offset))

    def argument(self, at: int) -> None:
        self.load(_ARGUMENTS + 8 * at)

    def keep(self, mask: int) -> None:
        self._steps.append((_AND, None, None, mask))

    def check(self, code: int, value: int, yes: str | None = None, no: str | None = None) -> None:
        self._steps.append((code, yes, no, value))

    def end(self, verdict: int) -> None:
        self._steps.append((_RETURN, None, None, verdict))

    def assembled(self) -> bytes:
        def distance(at: int, label: str | None) -> int:
            return 0 if label is None else self._labels[label] - at - 1

        return b"".join(
            struct.pack("HBBI", code, distance(at, yes), distance(at, no), value)
            for at, (code, yes, no, value) in enumerate(self._steps)
        )


def kernel_filter(machine: str, *, any_port: bool, unix: bool) -> bytes:
    """Return the filter for a kind of machine; `any_port` and `unix` say what is granted."""
    numbers = FILTERED_MACHINES[machine]
    steps = _Steps()
    steps.load(_ARCH)
    steps.check(_IF_EQUAL, numbers.arch, no="unknown")
    steps.load(_NUMBER)
    steps.check(_IF_LEAST, _X32, yes="unknown")
    steps.check(_IF_EQUAL, _IO_URING_SETUP, yes="unknown")
    steps.check(_IF_EQUAL, numbers.socket, yes="socket")
    if not any_port:
        steps.check(_IF_EQUAL, numbers.sendto, yes="flags 3")
        steps.check(_IF_EQUAL, numbers.sendmmsg, yes="flags 3")
        steps.check(_IF_EQUAL, numbers.sendmsg, yes="flags 2")
    steps.end(_ALLOW)
    for at in (3, 2):
        steps.label(f"flags {at}")
        steps.argument(at)
        steps.check(_IF_SET, _MSG_FASTOPEN, yes="refuse")
        steps.end(_ALLOW)
    steps.label("socket")
    steps.argument(0)
    for family in (socket.AF_INET, socket.AF_INET6):
        steps.check(_IF_EQUAL, family, yes="allowed" if any_port else "internet")
    steps.check(_IF_EQUAL, socket.AF_UNIX, yes="allowed" if unix else "refuse")
    steps.check(_IF_EQUAL, _AF_NETLINK, no="refuse")
    steps.argument(2)
    steps.check(_IF_EQUAL, 0, yes="allowed", no="refuse")
    steps.label("internet")
    steps.argument(1)
    steps.keep(_KIND_OF_SOCKET)
    steps.check(_IF_EQUAL, socket.SOCK_STREAM, yes="tcp")
    steps.check(_IF_EQUAL, socket.SOCK_DGRAM, yes="udp", no="refuse")
    for name, protocols in (("tcp", _TCP), ("udp", _UDP)):
        steps.label(name)
        steps.argument(2)
        for protocol in protocols:
            steps.check(_IF_EQUAL, protocol, yes="allowed")
        steps.end(_REFUSE)
    steps.label("allowed")
    steps.end(_ALLOW)
    steps.label("refuse")
    steps.end(_REFUSE)
    steps.label("unknown")
    steps.end(_UNKNOWN)
    return steps.assembled()


# Which systems can confine a server: their kernel and their processor.


# The version of Landlock that can limit connections.
_PORTS_SINCE: Final = 4


def problem_of_system(*, limits_ports: bool = True) -> str | None:
    """Return why servers cannot be confined on this machine; None where they can."""
    if sys.platform != "linux":
        return "only Linux can confine it"
    version = confine.abi()
    if version == 0:
        return "this kernel has no Landlock (Linux 5.13 or newer, and not switched off)"
    if platform.machine() not in FILTERED_MACHINES:
        return "its processor is of a kind whose system calls are not known here"
    if limits_ports and version < _PORTS_SINCE:
        return (
            f"this kernel has version {version} of Landlock, which cannot limit connections (Linux 6.7 can);"
            ' sandbox.connect = "any" does without'
        )
    return None
