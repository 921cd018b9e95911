"""The filter of system calls, run by a small model of the kernel's machine."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from portbook.sandbox.system_call_filter import FILTERED_MACHINES, kernel_filter

ALLOWED, REFUSED, UNKNOWN = 0, errno.EACCES, errno.ENOSYS
STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM
# Flags that a program adds to the kind of a socket.
CLOSED_AND_LATE = 0o2004000


def verdict(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Return the error that the kernel would answer with; 0 where it lets the call through."""
    steps = list(struct.iter_unpack("HBBI", program))
    data = struct.pack("iIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    value, at = 0, 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("I", data, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x45:
                at += yes if value & operand else no
            case _:
                assert code == 0x06
                return 0 if operand == 0x7FFF0000 else operand & 0xFFFF


@pytest.mark.parametrize("machine", FILTERED_MACHINES)
@pytest.mark.parametrize(
    ("arguments", "narrow", "wide"),
    [
        ((socket.AF_INET, STREAM, 0), ALLOWED, ALLOWED),
        ((socket.AF_INET6, STREAM | CLOSED_AND_LATE, 6), ALLOWED, ALLOWED),
        ((socket.AF_INET, STREAM, 262), REFUSED, ALLOWED),
        ((socket.AF_INET, STREAM, 132), REFUSED, ALLOWED),
        ((socket.AF_INET, DATAGRAM | CLOSED_AND_LATE, 17), ALLOWED, ALLOWED),
        ((socket.AF_INET, DATAGRAM, 1), REFUSED, ALLOWED),
        ((socket.AF_INET, 3, 1), REFUSED, ALLOWED),
        ((socket.AF_INET, 5, 132), REFUSED, ALLOWED),
        ((socket.AF_UNIX, STREAM, 0), REFUSED, ALLOWED),
        ((16, 3, 0), ALLOWED, ALLOWED),
        ((16, 3, 12), REFUSED, REFUSED),
        ((17, 3, 768), REFUSED, REFUSED),
        ((40, STREAM, 0), REFUSED, REFUSED),
    ],
)
def test_sockets_are_made_as_they_are_granted(
    machine: str, arguments: tuple[int, ...], narrow: int, wide: int
) -> None:
    numbers = FILTERED_MACHINES[machine]
    for granted, expected in ((False, narrow), (True, wide)):
        program = kernel_filter(machine, any_port=granted, unix=granted)
        assert verdict(program, numbers.arch, numbers.socket, *arguments) == expected


@pytest.mark.parametrize("machine", FILTERED_MACHINES)
def test_what_would_connect_without_asking_is_refused(machine: str) -> None:
    numbers, fast_open = FILTERED_MACHINES[machine], 0x20000000
    narrow = kernel_filter(machine, any_port=False, unix=False)
    wide = kernel_filter(machine, any_port=True, unix=False)
    for number, at in ((numbers.sendto, 3), (numbers.sendmsg, 2), (numbers.sendmmsg, 3)):
        arguments = [0] * 6
        assert verdict(narrow, numbers.arch, number, *arguments) == ALLOWED
        arguments[at] = fast_open | 0x4000
        assert verdict(narrow, numbers.arch, number, *arguments) == REFUSED
        assert verdict(wide, numbers.arch, number, *arguments) == ALLOWED


@pytest.mark.parametrize("machine", FILTERED_MACHINES)
def test_rings_and_calls_of_other_machines_are_unknown_and_all_else_passes(machine: str) -> None:
    numbers = FILTERED_MACHINES[machine]
    program = kernel_filter(machine, any_port=True, unix=True)
    assert verdict(program, numbers.arch, 425, 8) == UNKNOWN
    assert verdict(program, 0x40000003, 1) == UNKNOWN
    assert verdict(program, numbers.arch, 0x40000000 + numbers.socket, socket.AF_INET, STREAM) == UNKNOWN
    others = set(range(500)) - {425, numbers.socket}
    assert {number for number in others if verdict(program, numbers.arch, number)} == set()
