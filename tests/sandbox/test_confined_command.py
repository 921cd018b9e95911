"""The filter of system calls, run by a small model of the kernel's machine."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from portbook.sandbox import landlock_and_limits
from portbook.sandbox.always_readable_files import always_readable
from portbook.sandbox.confined_command import NotConfinable, confined_command, problem_of_system
from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.sandbox.seccomp_filter import FILTERED_MACHINES, kernel_filter

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


WHO = {"PATH": "/usr/bin:/bin"}


def test_the_rules_are_what_the_settings_grant_and_what_every_program_needs(tmp_path: Path) -> None:
    granted = DeclaredSandbox(read=(tmp_path,), write=(tmp_path,), connect=(443,), memory_mb=2, processes=9)
    command = confined_command(["sh", "-c", "true"], granted, WHO, tmp_path)
    rules = json.loads(command[4])
    assert command[-3:] == ("sh", "-c", "true")
    assert {str(tmp_path), "/dev/null"} <= set(rules["read"])
    assert rules["write"] == ["/dev/null", "/dev/full", str(tmp_path)]
    assert (rules["connect"], rules["memory_bytes"], rules["processes"]) == ([443], 2 << 20, 9)


@pytest.mark.parametrize(
    ("system", "version", "why"),
    [("darwin", 9, "only Linux"), ("linux", 0, "no Landlock"), ("linux", 3, "cannot limit connections")],
)
def test_a_system_that_cannot_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, version: int, why: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(landlock_and_limits, "abi", lambda: version)
    assert why in str(problem_of_system())
    with pytest.raises(NotConfinable, match=why):
        confined_command(["sh"], DeclaredSandbox(), WHO, tmp_path)
    assert (problem_of_system(limits_ports=False) is None) == (version == 3)


@pytest.mark.skipif(problem_of_system() is not None, reason=str(problem_of_system()))
@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (["sh", "-c", "exit 7"], 7, b""),
        (["sh", "-c", "read x < /etc/passwd"], 2, b"Permission denied"),
        (["no-such-program"], 126, b"cannot be started"),
    ],
)
def test_a_confined_program_ends_as_it_would_without(
    tmp_path: Path, command: list[str], status: int, said: bytes
) -> None:
    confined = confined_command(command, DeclaredSandbox(), WHO, tmp_path)
    done = subprocess.run(confined, env=WHO, cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert (done.returncode, said in done.stderr) == (status, True)


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def readable(folder: Path, *command: str, path: Path | None = None, **environ: str) -> set[str]:
    return set(always_readable(command, {"PATH": str(path or folder / "bin"), **environ}, folder))


def test_the_prefix_of_a_program_is_readable(tmp_path: Path) -> None:
    program(tmp_path / "opt" / "bin" / "tool")
    assert str(tmp_path / "opt") in readable(tmp_path, "tool", path=tmp_path / "opt" / "bin")


def test_the_interpreter_of_a_script_and_where_links_lead_are_readable(tmp_path: Path) -> None:
    program(tmp_path / "node" / "bin" / "node")
    real = program(tmp_path / "packages" / "cli.js", "#!/usr/bin/env -S node --quiet\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npx").symlink_to(real)
    found = readable(
        tmp_path, "npx", PATH=os.pathsep.join((str(tmp_path / "bin"), str(tmp_path / "node/bin")))
    )
    assert {str(real), str(tmp_path / "node")} <= found


def test_the_installation_that_made_a_virtual_environment_is_readable(tmp_path: Path) -> None:
    program(tmp_path / "base" / "bin" / "python")
    program(tmp_path / "venv" / "bin" / "python")
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {tmp_path / 'base' / 'bin'}\nversion = 3\n")
    assert {str(tmp_path / "venv"), str(tmp_path / "base")} <= readable(tmp_path, "./venv/bin/python")


@pytest.mark.parametrize("inner", ["bin", ".local/bin"])
def test_a_persons_home_is_never_readable_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    program(tmp_path / inner / "tool")
    found = readable(tmp_path, str(tmp_path / inner / "tool"))
    assert str(tmp_path / inner) in found
    assert not {str(tmp_path), str(tmp_path / ".local")} & found


def test_files_that_the_command_names_are_readable_and_folders_are_not(tmp_path: Path) -> None:
    program(tmp_path / "server.py")
    (tmp_path / "data").mkdir()
    found = readable(tmp_path, "python-that-is-not-there", "server.py", "data", "--x", "\0")
    assert str(tmp_path / "server.py") in found
    assert str(tmp_path / "data") not in found


def test_certificates_that_variables_name_are_readable(tmp_path: Path) -> None:
    program(tmp_path / "ca.pem")
    assert str(tmp_path / "ca.pem") in readable(tmp_path, "x", SSL_CERT_FILE=str(tmp_path / "ca.pem"))


def test_private_keys_beside_certificates_are_not(tmp_path: Path) -> None:
    assert not {"/etc/ssl", "/etc/ssl/private", "/etc/pki"} & readable(tmp_path, "x")


def test_a_program_that_only_a_virtual_environment_has_is_looked_for_there_alone(tmp_path: Path) -> None:
    program(tmp_path / "python" / "bin" / "python3")
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python3").symlink_to(tmp_path / "python" / "bin" / "python3")
    (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {tmp_path / 'python' / 'bin'}\n")
    server = program(tmp_path / "env" / "bin" / "a-server", f"#!{tmp_path / 'env' / 'bin' / 'python3'}\n")
    found = readable(tmp_path, str(server))
    assert {str(tmp_path / "env"), str(tmp_path / "python")} <= found
    assert [path for path in found if not Path(path).exists()] == []
