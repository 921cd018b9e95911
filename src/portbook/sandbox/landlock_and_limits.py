"""The program that confines itself and then becomes a server.

Landlock for files and ports, a filter of system calls for the ways around it, limits, and no powers of root
beyond those over files. It runs alone, as `python landlock_and_limits.py RULES COMMAND…`, and imports
nothing of Portbook: RULES is JSON, as `confined_command.py` writes it. Whatever the server starts is
confined as well; nothing undoes it.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import stat
import struct
import sys
from typing import Any

__all__ = ["abi", "confine", "main"]

# As a shell says it: the program was found, but cannot be run.
_NOT_RUN = 126

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP, _SECCOMP_FILTER = 22, 2
_PR_CAPBSET_DROP = 24
# Powers of root that stay: over the owner and the mode of files, over its own processes, and to give them up.
_KEPT_POWERS = frozenset(range(9))
_MAX_POWERS = 64

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
# Regular files, folders, sockets, pipes and links; devices are not made by servers.
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
# Abstract Unix sockets of others, and signals to them.
_SCOPES = 1 << 0 | 1 << 1

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE | _REFER | _TRUNCATE
# What a rule for a file, unlike one for a folder, may grant.
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

# From which version of Landlock on the kernel knows a right.
_FILES_BY_ABI = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
_NET_ABI, _SCOPES_ABI = 4, 6


def main(arguments: list[str]) -> int:
    """Confine this process by the rules, and become the command."""
    rules, command = json.loads(arguments[0]), arguments[1:]
    try:
        confine(rules)
    except OSError as error:
        sys.stderr.write(f"cannot be confined: {error.filename or 'the system'}: {error.strerror}\n")
        return _NOT_RUN
    try:
        os.execvp(command[0], command)  # noqa: S606 - the operator's command, without a shell
    except OSError as error:
        sys.stderr.write(f"cannot be started: {error.strerror}\n")
    return _NOT_RUN


def abi() -> int:
    """Return which version of Landlock the kernel has; 0 if none."""
    if sys.platform != "linux":
        return 0
    return max(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG), 0)


def confine(rules: dict[str, Any]) -> None:
    """Take from this process, for good, what `rules` do not grant.

    Raises `OSError` where that cannot be done.
    """
    version = abi()
    files = sum(rights for since, rights in _FILES_BY_ABI.items() if since <= version)
    ports = rules["connect"]
    is_net_limited = ports is not None
    attributes = (ctypes.c_uint64 * 3)(
        files,
        _BIND_TCP | _CONNECT_TCP if is_net_limited else 0,
        _SCOPES if version >= _SCOPES_ABI else 0,
    )
    size = 24 if version >= _SCOPES_ABI else 16 if version >= _NET_ABI else 8
    ruleset = _checked(_libc().syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    for path in rules["read"]:
        _grant_path(ruleset, path, _READ & files)
    for path in rules["write"]:
        _grant_path(ruleset, path, _WRITE & files)
    for port in ports or ():
        _add_rule(
            ruleset, _NET_PORT, _CONNECT_TCP.to_bytes(8, sys.byteorder) + port.to_bytes(8, sys.byteorder)
        )
    _limit(rules)
    _give_up_powers()
    _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc().syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    _filter_calls(bytes.fromhex(rules["filter"]))


def _give_up_powers() -> None:
    """Take from root, for good, what would undo this: modules, raw sockets, other processes, mounts.

    What this process may do ends with the program that it becomes: to that one, the kernel grants no more
    than is left here. Others than root have none of these.
    """
    if os.geteuid() != 0:
        return
    for power in range(_MAX_POWERS):
        # The first number that the kernel does not know is the end.
        if power not in _KEPT_POWERS and _libc().prctl(_PR_CAPBSET_DROP, power, 0, 0, 0) != 0:
            break


def _filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    _checked(_libc().prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, header, 0, 0))


def _grant_path(ruleset: int, path: str, rights: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(folder).st_mode):
            rights &= _OF_FILES
        _add_rule(ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, folder))
    finally:
        os.close(folder)


def _add_rule(ruleset: int, kind: int, rule: bytes) -> None:
    _checked(_libc().syscall(_ADD_RULE, ruleset, kind, rule, 0))


def _limit(rules: dict[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its memory may hold secrets
    if rules["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (rules["memory_bytes"],) * 2)
    if rules["processes"] is not None:
        # The kernel counts all of a user's, so those that run already are added. It does not count root's:
        # there the keeper alone does.
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        wanted = rules["processes"] + _tasks_of_this_user()
        if most != resource.RLIM_INFINITY:
            wanted = min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NPROC, (wanted, wanted))


def _tasks_of_this_user() -> int:
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the time of a start
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == os.getuid():  # noqa: PTH116 - likewise
                    count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208 - likewise
            except OSError:  # it has ended
                continue
    return count


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
