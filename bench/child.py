"""One server as a child process: its pipes, its processor time, its memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Semaphore, Thread
from typing import Final, Self

__all__ = ["Child", "WrongAnswer", "environment"]

_CHUNK: Final = 1 << 16
# What would change a measurement: our own settings, and whether Python may write or use bytecode.
_OURS: Final = ("PORTBOOK_", "PYTHON")


class WrongAnswer(RuntimeError):
    """A server did not answer as it has to: its speed means nothing."""


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a person who has set nothing, and what is `extra`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {**inherited, **extra}


class Child:
    """A server that runs. Closes its input and waits for its end on leaving the context."""

    def __init__(self, command: Sequence[str], folder: Path, extra: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        with (folder / "stderr").open("ab") as said:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment(extra),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                bufsize=0,
            )
        self._name, self._folder = command[0], folder
        self._tail = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def stop(self) -> None:
        """Ask it to end, as an operator does: a server over HTTP does not end with its input."""
        self._process.terminate()

    def kill(self) -> None:
        """End it at once: all that it was started for is done, and under callgrind its end takes long."""
        self._process.kill()

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Write all of `data`."""
        assert self._process.stdin is not None
        view, descriptor = memoryview(data), self._process.stdin.fileno()
        while view:
            view = view[os.write(descriptor, view) :]

    def exchange(self, batches: Sequence[tuple[int, bytes]], window: int) -> bytes:
        """Write batches of lines as fast as the pipe takes them; return as many lines as were written.

        A batch is written, in a thread, once no more than `window` lines would wait for their answer.

        Raises `WrongAnswer` where the output ends before.
        """
        credit = Semaphore(window)

        def feed() -> None:
            for count, data in batches:
                for _ in range(count):
                    credit.acquire()
                self.write(data)

        feeder = Thread(target=feed, daemon=True)
        feeder.start()
        answers = self.read_lines(sum(count for count, _ in batches), on_lines=credit.release)
        feeder.join()
        return answers

    def read_lines(self, count: int, on_lines: Callable[[int], None] = lambda _: None) -> bytes:
        """Return the next `count` lines; `on_lines` hears how many have arrived at a time.

        Raises `WrongAnswer` where the output ends before.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        parts, left = [self._tail], count - self._tail.count(b"\n")
        while left > 0:
            part = os.read(descriptor, _CHUNK)
            if not part:
                said = (self._folder / "stderr").read_text(errors="replace")[-400:]
                raise WrongAnswer(f"{self._name} ended before its last answer: {said}")
            parts.append(part)
            arrived = part.count(b"\n")
            left -= arrived
            if arrived:
                on_lines(arrived)
        lines, _, self._tail = b"".join(parts).rpartition(b"\n")
        return lines + b"\n"

    def cpu_seconds(self) -> float:
        """Return the processor time that it has taken so far, or not a number where no system tells."""
        if sys.platform != "linux":
            return float("nan")
        # The clock of another process, as clock_getcpuclockid(3) would name it: to the nanosecond and at any
        # moment, where getrusage(2) knows only children that have ended.
        return time.clock_gettime((~self.pid << 3) | 2)

    def resident_mib(self) -> float:
        """Return the memory that it has now, or not a number where no system tells."""
        if sys.platform != "linux":
            return float("nan")
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
