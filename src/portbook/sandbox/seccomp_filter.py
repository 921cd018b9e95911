"""`kernel_filter`: the program (seccomp) by which the kernel refuses what Landlock does not look at.

Landlock limits `connect` on TCP sockets. Around it lead a TCP socket of the multipath kind, one whose first
data is sent before it is connected (fast open), sockets of other families, and rings of requests that make
sockets without a system call. The filter closes these ways:

- an internet socket is TCP or UDP, unless every port is granted; no raw ones
- a Unix socket is made only where one was granted
- netlink is there for routes alone, which looking up a name needs
- no fast open, no rings, and no calls of a different kind of machine, whose numbers mean something else
"""

from __future__ import annotations

import errno
import socket
import struct
from typing import NamedTuple

__all__ = ["FILTERED_MACHINES", "kernel_filter"]


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
