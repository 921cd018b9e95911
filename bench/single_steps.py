"""`python -m bench.single_steps`: the instructions of a plain call as this processor executes them.

Callgrind emulates a processor that has no instructions for SHA-256, and counts some twenty thousand for the
hash of a record in place of a few hundred. Where the system lets a process trace another one, its steps can
be counted one by one instead. Each takes tens of microseconds, so only a few calls are counted.

What the kernel does is not counted, as it is not by callgrind, nor what other threads do: a plain call has
none. One round of a repeated instruction is one step; such instructions make copies of 4 KiB and more, and a
plain call has none of these either.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Final

from bench.child import Child, WrongAnswer
from bench.instructions import CALLS_IN_A_READ, SETTINGS, served
from bench.wire import frames, greeting, initialized

__all__ = ["NotTraced", "count_steps", "main", "steps_of"]

_FEW: Final = 2
_MANY: Final = 10
_WARM_UP: Final = 64

# How much longer a call takes while its steps are counted: the clock of the server is to hide that.
_SLOWER: Final = "100000"

# Requests of ptrace(2) on Linux.
_SINGLESTEP: Final = 9
_SEIZE: Final = 0x4206
_INTERRUPT: Final = 0x4207

# So long after its answer, a process waits for the next message. It is stopped there by a signal that it
# ignores, and that does not reach it.
_QUIET_S: Final = 0.5
_ENOUGH: Final = signal.SIGWINCH

# More than an answer to any chunk takes.
_MOST: Final = 50_000_000


class NotTraced(RuntimeError):
    """The steps cannot be counted; the message says why."""


def main() -> int:
    """Count, print and return the exit status."""
    try:
        print(f"a plain call over STDIO: {count_steps():,} instructions, counted by single steps")
    except NotTraced as reason:
        print(f"not counted: {reason}")
    return 0


def count_steps() -> int:
    """Return the instructions of one of as many plain calls in a read as callgrind counts.

    Two reads tell what a call takes and what a read does. Raises `NotTraced` where they cannot be counted.
    """
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        (Path(name) / "portbook.toml").write_text(SETTINGS)
        opening = [greeting() + b"\n", initialized() + b"\n", *[_calls(_WARM_UP, 1_000)] * 3]
        counted = [_calls(_FEW, 10_000), _calls(_MANY, 20_000)]
        few, many = steps_of([*served(), "--stdio"], Path(name), opening, counted)
    of_call = (many - few) / (_MANY - _FEW)
    of_read = few - _FEW * of_call
    return round(of_call + of_read / CALLS_IN_A_READ)


def _calls(count: int, first: int) -> bytes:
    return b"".join(frame + b"\n" for frame in frames("mcp", "echo", range(first, first + count)))


def steps_of(
    program: Sequence[str], folder: Path, opening: Iterable[bytes], counted: Iterable[bytes]
) -> list[int]:
    """Return the steps in which a Python program answers each of the `counted` chunks of lines.

    The chunks of the `opening` are sent before. Raises `NotTraced` where steps cannot be counted.
    """
    extra = {"PYTHONHASHSEED": "0", "SLOWER": _SLOWER}
    with Child([sys.executable, *program], folder, extra) as child:
        for chunk in opening:
            _exchange(child, chunk)
        try:
            _trace(child.pid)
            return [_steps_until_quiet(child, chunk) for chunk in counted]
        finally:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)  # it would wait for its next step to be allowed


def _exchange(child: Child, chunk: bytes) -> None:
    child.write(chunk)
    child.read_lines(sum(b'"id":' in line for line in chunk.splitlines()))


def _trace(pid: int) -> None:
    """Stop a process, so that it can be allowed one step after the other."""
    if not sys.platform.startswith("linux"):
        raise NotTraced("single steps are counted on Linux")
    time.sleep(_QUIET_S)  # it may still be busy with what it has just answered
    _ptrace(_SEIZE, pid)
    _ptrace(_INTERRUPT, pid)
    os.waitpid(pid, 0)


def _steps_until_quiet(child: Child, chunk: bytes) -> int:
    """Return the steps from the read of `chunk` until the process waits for the next."""

    def be_client() -> None:
        with suppress(WrongAnswer, OSError):  # it has ended, which is told below
            _exchange(child, chunk)
            time.sleep(_QUIET_S)
            os.kill(child.pid, _ENOUGH)

    client = Thread(target=be_client)
    client.start()
    for steps in range(_MOST):
        _ptrace(_SINGLESTEP, child.pid)
        _, status = os.waitpid(child.pid, 0)
        if not os.WIFSTOPPED(status):
            raise NotTraced("the server ended")
        if os.WSTOPSIG(status) == _ENOUGH:
            client.join()
            return steps
    raise NotTraced("the server does not answer")


_libc: Final = ctypes.CDLL(None, use_errno=True)


def _ptrace(request: int, pid: int) -> None:
    if _libc.ptrace(*map(ctypes.c_long, (request, pid, 0, 0))) != 0:
        raise NotTraced(os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    sys.exit(main())
