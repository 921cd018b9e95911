"""Standard output and standard error of a server, through a bounded queue: a log line never blocks it.

If no process reads them any more, a write to a full pipe would block for ever, and one to a closed pipe would
raise. So a line is written at once only where there is room for it. Otherwise it is queued for a thread that
may wait, with all lines after it, and what does not fit into the queue is dropped and counted. Nothing is
lost while the reader keeps up; what is queued at the end is written within a bound.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import threading
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["OutputQueue", "drain_output", "occupy_standard_error", "queued_output"]

# Some thousand lines: enough for a reader that pauses, and little memory where there is none.
_MAX_BYTES: Final = 1 << 20

# A writable pipe accepts this much without blocking: POSIX's PIPE_BUF.
_PIECE: Final = select.PIPE_BUF

# The longest that the end of a server waits for a reader.
_DRAIN_S: Final = 1.0


class OutputQueue(io.BufferedIOBase):
    """A binary stream whose writes are queued for a descriptor. From any thread."""

    name = "<queue>"

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._changed = threading.Condition()
        self._queued: list[bytes] = []
        self._size = 0
        self._dropped = 0
        self._is_idle = True
        """Whether the thread has written all that it took."""
        self._is_gone = False
        """Whether the reader has closed its end: nothing will be read again."""
        self._is_over = False
        self._thread: threading.Thread | None = None

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write `data` if there is room for it now; else queue it, or drop it where the queue is full."""
        piece = bytes(data)
        with self._changed:
            if not self._is_gone:
                rest = piece[self._written_now(piece) :]
                if rest:
                    self._queue(rest)
        return len(piece)

    def fileno(self) -> int:
        """Return the descriptor that the thread writes to."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether that is a terminal."""
        return os.isatty(self._descriptor)

    def drain(self, timeout_s: float) -> bool:
        """Wait until all is written, or cannot be any more; return whether that was in time."""
        with self._changed:
            return self._changed.wait_for(self._is_empty, timeout_s)

    def close(self) -> None:
        """End the thread once all is written; the descriptor stays open."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        super().close()

    def _is_empty(self) -> bool:
        return self._is_idle and not self._queued and not self._dropped

    def _written_now(self, piece: bytes) -> int:
        """Write `piece` if that does not block; return how much: that survives a kill of the process."""
        if len(piece) > _PIECE or not self._is_empty() or not self._has_room():
            return 0
        try:
            return os.write(self._descriptor, piece)
        except OSError:  # the thread tries again, and may wait or give up
            return 0

    def _has_room(self) -> bool:
        return self._poll.poll(0) == [(self._descriptor, select.POLLOUT)]

    def _queue(self, piece: bytes) -> None:
        # Once a line is dropped, all are until the queue is taken: what is missing is in one place.
        if self._dropped or self._size + len(piece) > _MAX_BYTES:
            self._dropped += piece.count(b"\n")
        else:
            self._queued.append(piece)
            self._size += len(piece)
        if self._thread is None:  # most servers never need it
            self._thread = threading.Thread(target=self._write_all, name="portbook-output", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._is_idle = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_empty() or self._is_over)
                if self._is_empty():
                    return
                self._is_idle = False
                pieces, dropped = self._queued, self._dropped
                self._queued, self._size, self._dropped = [], 0, 0
            try:
                self._send(b"".join((*pieces, _notice(dropped))))
            except OSError:  # the reader has closed its end
                with self._changed:
                    self._is_gone = True
                    self._queued, self._dropped = [], 0

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:  # a process that shares it has made it non-blocking
                select.select([], [self._descriptor], [])


def _notice(dropped: int) -> bytes:
    """Return the line that stands where lines were dropped."""
    if not dropped:
        return b""
    said = "1 line was" if dropped == 1 else f"{dropped} lines were"
    return f"portbook: warning: {said} dropped here: they were not read in time\n".encode()


# The queues in use, for an end of the process that runs no cleanup.
_queues: Final[list[OutputQueue]] = []


def drain_output() -> None:
    """Write what is queued, within a bound: before the process ends without cleanup."""
    until = time.monotonic() + _DRAIN_S
    for queue in _queues:
        queue.drain(max(0.0, until - time.monotonic()))


@contextlib.contextmanager
def queued_output() -> Generator[None]:
    """Queue what is printed inside of this block; at its end, write the rest within a bound."""
    before = sys.stdout, sys.stderr
    error = _queued(sys.stderr)
    # One queue where both have the same reader keeps the order of their lines.
    is_same = error is not None and _is_same(sys.stdout, error)
    out = error if is_same else _queued(sys.stdout)
    sys.stdout, sys.stderr = out or sys.stdout, error or sys.stderr
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or None
                stream.flush()
        drain_output()
        # A queue that is not read stays in place: with the descriptor itself, the exit could block.
        if all(queue.drain(0) for queue in _queues):
            sys.stdout, sys.stderr = before
        _queues.clear()


def _queued(stream: TextIO | None) -> TextIO | None:
    """Return a stream like `stream` whose writes are queued; None if it has no descriptor of its own."""
    if stream is None:  # it was closed when the process started
        return None
    try:
        descriptor = stream.fileno()
        stream.flush()
    except (OSError, ValueError):
        return None
    queue = OutputQueue(descriptor)
    _queues.append(queue)
    return io.TextIOWrapper(queue, stream.encoding, stream.errors, line_buffering=True)


def _is_same(stream: TextIO | None, queued: TextIO) -> bool:
    try:
        return stream is not None and os.path.sameopenfile(stream.fileno(), queued.fileno())
    except (OSError, ValueError):
        return False


def occupy_standard_error() -> None:
    """Keep descriptor 2 from becoming a socket or a file of ours, where the process started without it."""
    try:
        os.fstat(2)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        if nothing != 2:
            os.dup2(nothing, 2)
            os.close(nothing)
