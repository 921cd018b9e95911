"""The program that starts a server and outlives it: whatever ends, no process of the server is left behind.

It runs alone, as `python process_reaper.py LIFELINE TASKS COMMAND…`, and imports nothing of Portbook. The
server inherits its standard streams, so no message passes through here. TASKS is how many processes and
threads it may have at once, 0 for any number. LIFELINE is the read end of a pipe whose other end
only Portbook holds: it closes when Portbook wants the server to end, and also when Portbook is killed.

The server has a session and a process group of its own. Processes that leave the group (as those that `npx`
and `uvx` start may) are still found: on Linux the keeper is their subreaper, so that each of them stays below
it, whichever of its parents has ended.
"""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:  # `signal` and `contextlib` import `enum`, `functools` and `collections`: a third of a start
    import _signal as signal

__all__ = ["main"]

# How long a server may take to end by itself after SIGTERM.
_GRACE_S = 2.0
_STEP_S = 0.02
_MOMENT_S = 0.002
# How often the processes of a server are counted, where they are limited.
_COUNT_S = 0.1

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# As a shell says it: the program could not be started, or a signal ended it, whose number is added.
_NOT_STARTED = 127
_BY_SIGNAL = 128


def main(arguments: list[str]) -> int:
    """Run a command until it ends or the lifeline closes; return its exit status."""
    lifeline, tasks, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    wake, woken = os.pipe()
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _nothing)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    server = os.fork()
    if server == 0:
        _become(command, lifeline)
    # Only the server may hold them: Portbook sees that it has ended when they close.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    status: int | None = None
    while status is None:
        ready, _, _ = select.select([lifeline, wake], [], [], _COUNT_S if tasks else None)
        if tasks and _tasks() > tasks:
            os.write(2, b"it was ended: it has more processes and threads than its sandbox allows\n")
            break
        if lifeline in ready or _was_told_to_end(wake):
            _end_gently(server)
            break
        status, _ = _reap(server)
    _end_all(server)
    if status is None:
        return 0
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _BY_SIGNAL - code


def _nothing(number: int, frame: object) -> None:
    """Be woken: a handler has to exist for that."""


def _become(command: list[str], lifeline: int) -> None:
    """Turn this process into the server."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.close(lifeline)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the operator's command, without a shell
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(_NOT_STARTED)


def _was_told_to_end(wake: int) -> bool:
    with _suppress(BlockingIOError):
        return any(number != signal.SIGCHLD for number in os.read(wake, 4096))
    return False


def _reap(server: int) -> tuple[int | None, bool]:
    """Collect every process that has ended.

    Return the status of the server if it is one of them, and whether a process is left: whoever loses its
    parent becomes a child of this one.
    """
    status = None
    try:
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status, True
            if pid == server:
                status = ended
    except ChildProcessError:
        return status, False


def _end_gently(server: int) -> None:
    """Ask the group to end, and wait a moment for it."""
    until = time.monotonic() + _GRACE_S
    with _suppress(ProcessLookupError, PermissionError):
        os.killpg(server, signal.SIGTERM)
    while time.monotonic() < until:
        if _reap(server)[0] is not None:
            return
        time.sleep(_STEP_S)


def _end_all(server: int) -> None:
    """Kill whatever is left: of the group, and of all that has ever left it.

    One that forks and ends, again and again, may have done so since it was seen: it is looked for at once.
    """
    until = time.monotonic() + _GRACE_S
    before: list[int] = []
    while True:
        with _suppress(ProcessLookupError, PermissionError):
            os.killpg(server, signal.SIGKILL)
        if not _reap(server)[1] or time.monotonic() > until:
            return
        left = _children()
        for pid in left:
            with _suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if left == before:  # on their way
            time.sleep(_MOMENT_S)
        before = left


def _children() -> list[int]:
    """Return the children of this process; all below it, where the system does not tell its own."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return _descendants()


def _tasks() -> int:
    """Return how many processes and threads there are below this one."""
    count = 0
    for pid in _descendants():
        with _suppress(OSError):
            count += len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208 - pathlib would double the time of a start
    return count


def _descendants() -> list[int]:
    """Return the processes below this one that have not ended, as far as the system shows them."""
    parents: dict[int, int] = {}
    with _suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the time of a start
            if name.isdigit():
                stat = f"/proc/{name}/stat"
                with _suppress(OSError, ValueError), open(stat, "rb") as file:  # noqa: PTH123 - likewise
                    # The name of a program, in parentheses, may hold anything.
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                    if state not in (b"Z", b"X"):
                        parents[int(name)] = int(parent)
    found: list[int] = []
    above = {os.getpid()}
    while above:
        above = {pid for pid, parent in parents.items() if parent in above}
        found += sorted(above)
    return found


class _suppress:  # noqa: N801 - as `contextlib` has it
    """Let errors of these kinds end a block, and nothing else."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, place: object) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
