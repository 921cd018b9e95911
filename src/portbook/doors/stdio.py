"""Standard input and output, reserved for frames: on private descriptors, without blocking the loop.

A tool may print, or start a program that does. So frames use private descriptors, and descriptors 0 and 1
are redirected before any tool is loaded: 1 to standard error, 0 to the null device.

No descriptor is ever set to non-blocking: every process with the same end open shares that flag, a shell for
example. A read is preceded by a check whether it would block instead. A write asks the system not to block
for this once; where a system cannot do that, it is preceded by a check, too. For the same reason uvloop does
not watch a descriptor itself, as it sets the flag on what it watches: it watches a selector, and the selector
watches the descriptor. Python's own loop leaves the flag alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import select
import selectors
import stat
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

from portbook.text.named_tuple import NamedTuple

__all__ = ["ClientDoesNotRead", "Reader", "StandardStreams", "Writer", "claim_standard_streams"]

_CHUNK: Final = 1 << 16

# A writable descriptor accepts this much without blocking: POSIX's PIPE_BUF, on Linux a page.
_PIECE: Final = 512 if sys.platform == "darwin" else 4096

# A pipe holds a chunk unless it is asked for more; this is the most that Linux gives without privileges.
_WIDE_PIPE: Final = 1 << 20

# How many pieces a system takes in one write: POSIX's IOV_MAX on Linux and macOS.
_MOST_PIECES: Final = 1024

# What a system or a kind of descriptor answers that cannot write without blocking: Linux can since 6.4.
_CANNOT: Final = frozenset({errno.EOPNOTSUPP, errno.ESPIPE, errno.EINVAL, errno.ENOSYS})

# A client that reads without a pause makes room within this time, and to wait for that takes less than a turn
# of the event loop; but no longer than a batch of small messages, and not again once the client has paused.
_PAUSE_S: Final = 0.0002
_TURN_S: Final = 0.002

# Descriptors from here on cannot be waited for so briefly: FD_SETSIZE.
_MOST_DESCRIPTORS: Final = 1024

# How long a client may make no room once this is to end. One that reads slowly gets everything; a socket has
# room again when some hundred kilobytes of it are read.
_PATIENCE_S: Final = 5.0


class ClientDoesNotRead(BrokenPipeError):
    """The client has its end open, but has read nothing for so long that it is not waited for any more."""


class StandardStreams(NamedTuple):
    """The descriptors that frames are read from and written to."""

    incoming: int
    outgoing: int


def claim_standard_streams() -> StandardStreams:
    """Reserve standard input and output for frames, and redirect descriptors 0 and 1."""
    for number, name in ((0, "standard input"), (1, "standard output")):
        try:
            os.fstat(number)
        except OSError as error:
            raise OSError(error.errno, f"{name} is closed") from None
    sys.stdout.flush()
    streams = StandardStreams(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return streams


class Reader:
    """Reads chunks from a descriptor until it ends or is stopped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._watch = _watch(descriptor, selectors.EVENT_READ)
        self._is_stopped = False
        self._is_wide = False
        self._most = _CHUNK
        self._coming: asyncio.Future[bytes] | None = None
        """What the next read returns, while it is waited for."""
        self._serve: Callable[[bytes], bool] = _leave
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that watches the descriptor, while one does."""
        self._watched = descriptor
        """What that loop watches."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end of the stream, or once stopped."""
        return await self._next(_leave)

    async def serve_each(self, serve: Callable[[bytes], bool]) -> bool:
        """Give `serve` all bytes as they come, until it returns False: it has to wait before it takes more.

        Return whether there may be more, or the stream has ended, or was stopped. A task that had to be
        woken for the bytes would serve them a turn of the loop later, at the cost of a third of a call.
        """
        return bool(await self._next(serve))

    async def _next(self, serve: Callable[[bytes], bool]) -> bytes:
        """Return the next bytes that `serve` returns False for."""
        if self._is_stopped:
            return b""
        self._serve = serve
        if self._watch is None:
            while True:
                await asyncio.sleep(0)  # lets the loop serve the remaining doors
                taken = b"" if self._is_stopped else self._take()
                if not (taken and serve(taken)):
                    return taken
        loop = asyncio.get_running_loop()
        self._coming = loop.create_future()
        if self._loop is None:
            if not isinstance(loop, asyncio.SelectorEventLoop):
                self._watched = self._watch.fileno()
            loop.add_reader(self._watched, self._on_ready)
            self._loop = loop
        return await self._coming

    def close(self) -> None:
        """Stop watching the descriptor; it stays open."""
        self._unwatch()
        if self._watch is not None:
            self._watch.close()

    def stop(self) -> None:
        """Make `read` return as at the end of the stream. Unread bytes stay unread."""
        self._is_stopped = True
        self._unwatch()  # its number may soon be that of a different one
        if self._coming is not None and not self._coming.done():
            self._coming.set_result(b"")

    def _on_ready(self) -> None:
        """Read what has come, if it is waited for.

        Here and not in `read`, which runs later: by then, the loop's word that nothing blocks may be out of
        date. The loop goes on watching from one read to the next, and stops where no read follows.
        """
        if self._coming is None or self._coming.done():
            self._unwatch()
            return
        try:
            taken = self._take()
            is_served = bool(taken) and self._serve(taken)
        except Exception as error:
            if self._coming.done():  # serving has stopped this before: the loop reports it
                raise
            self._coming.set_exception(error)  # a terminal that hung up, for example
        except BaseException:  # the process is about to end, and so is the door
            self._coming.cancel()
            raise
        else:
            if not (is_served or self._coming.done()):
                self._coming.set_result(taken)

    def _take(self) -> bytes:
        try:
            taken = os.read(self._descriptor, self._most)
        except ConnectionResetError:  # a socket that was closed with unread answers
            return b""
        if self._watch is not None:  # the rest of a large message is read in fewer turns of the loop
            is_within_message = len(taken) >= _CHUNK and b"\n" not in taken
            if is_within_message and not self._is_wide:
                self._is_wide = True
                _widen(self._descriptor)
            self._most = _WIDE_PIPE if is_within_message else _CHUNK
        return taken

    def _unwatch(self) -> None:
        if self._loop is not None and self._watch is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._watched)
        self._loop = None


class Writer:
    """Writes all its data, and waits where the client is slow to read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._watch = _watch(descriptor, selectors.EVENT_WRITE)
        self._can_try = hasattr(os, "RWF_NOWAIT")
        """Whether the system may be asked to write as much as does not block."""
        self._is_wide = False
        self._is_hurried = False
        self._left: list[memoryview] = []
        """What is still to be written, while the client is waited for."""
        self._written: asyncio.Future[None] | None = None
        """Done once all of it is written, while that is waited for."""
        self._patience: asyncio.TimerHandle | None = None
        self._has_paused = False
        """Whether the client has made no room for a moment, since this write began."""

    def hurry(self) -> None:
        """Give up, from now on, where the client reads nothing for some seconds: this is to end."""
        if not self._is_hurried and self._written is not None:
            self._be_patient(self._written)
        self._is_hurried = True

    async def write(self, *pieces: bytes | memoryview) -> None:
        """Write all pieces, one after the other: to join large ones would take as long as to write them.

        Raises `BrokenPipeError` where the client has stopped reading, or reads nothing while this hurries.
        """
        left = [memoryview(piece) for piece in pieces if piece]
        if not self._is_wide and sum(map(len, left)) > _CHUNK:
            self._is_wide = True
            _widen(self._descriptor)
        self._has_paused = False
        self._write_while_read(left)
        if left and self._watch is not None:
            await self._write_as_room_comes(left, self._watch)

    async def _write_as_room_comes(self, left: list[memoryview], watch: selectors.DefaultSelector) -> None:
        """Write the rest. The loop watches until all is written: a client makes room a little at a time."""
        loop = asyncio.get_running_loop()
        self._left, self._written = left, loop.create_future()
        if self._is_hurried:
            self._be_patient(self._written)
        loop.add_reader(watch.fileno(), self._on_room, self._written)
        try:
            await self._written
        finally:
            loop.remove_reader(watch.fileno())
            self._left, self._written = [], None
            if self._patience is not None:
                self._patience.cancel()

    def _on_room(self, written: asyncio.Future[None]) -> None:
        if written.done():
            return
        try:
            has_read = self._write_while_read(self._left)
        except Exception as error:  # noqa: BLE001 - whoever waits for the write gets it
            written.set_exception(error)
        except BaseException:  # the process is about to end, and so is the write
            written.cancel()
            raise
        else:
            if not self._left:
                written.set_result(None)
            elif self._is_hurried and has_read:
                self._be_patient(written)

    def _be_patient(self, written: asyncio.Future[None]) -> None:
        """Wait for a client that reads nothing from now on, but not for long."""
        if self._patience is not None:
            self._patience.cancel()
        self._patience = asyncio.get_running_loop().call_later(_PATIENCE_S, _give_up, written)

    def _write_while_read(self, left: list[memoryview]) -> bool:
        """Write and drop what the client reads without a pause; return whether it was anything."""
        has_written, descriptor = self._write_from(left), self._descriptor
        until = monotonic() + _TURN_S
        while left and not self._has_paused and descriptor < _MOST_DESCRIPTORS and monotonic() < until:
            self._has_paused = not select.select((), (descriptor,), (), _PAUSE_S)[1]
            has_written = self._write_from(left) or has_written
        return has_written

    def _write_from(self, left: list[memoryview]) -> bool:
        """Write what can be written without blocking, and drop it; return whether it was anything."""
        has_written = False
        while left:
            views = left[:_MOST_PIECES]
            offered, written = sum(map(len, views)), self._write_some(views)
            _drop(left, written)
            has_written = has_written or written > 0
            if self._watch is not None and (written == 0 or (self._can_try and written < offered)):
                break  # there is no more room
        return has_written

    def write_now(self, data: bytes | memoryview) -> memoryview:
        """Write what can be written without blocking; return the rest.

        Raises `BrokenPipeError` where the client has stopped reading.
        """
        view = memoryview(data)
        return view[self._write_some((view,)) :]

    def _write_some(self, views: Sequence[memoryview]) -> int:
        """Write what can be written without blocking; return how much it was."""
        try:
            if self._watch is None:
                return os.writev(self._descriptor, views)
            if self._can_try:
                try:
                    return os.pwritev(self._descriptor, views, -1, os.RWF_NOWAIT)
                except BlockingIOError:
                    return 0
                except OSError as error:
                    if error.errno not in _CANNOT:
                        raise
                    self._can_try = False
            return os.write(self._descriptor, views[0][:_PIECE]) if self._poll.poll(0) else 0
        except ConnectionResetError as error:  # a TCP socket's error where the client has stopped reading
            raise BrokenPipeError(*error.args) from None

    def close(self) -> None:
        """Stop watching the descriptor; it stays open."""
        if self._watch is not None:
            self._watch.close()


def _leave(_: bytes) -> bool:
    return False


def _drop(views: list[memoryview], count: int) -> None:
    """Drop the first `count` bytes of `views`."""
    whole = 0
    while whole < len(views) and len(views[whole]) <= count:
        count -= len(views[whole])
        whole += 1
    del views[:whole]
    if count:
        views[0] = views[0][count:]


def _widen(descriptor: int) -> None:
    """Let a pipe hold more, so that a large message takes a few turns of the loop instead of dozens."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # not a pipe, or its owner has too many large ones
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _WIDE_PIPE)


def _watch(descriptor: int, event: int) -> selectors.DefaultSelector | None:
    """Return what a loop can watch to know when `descriptor` is ready, or None if it always is."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    selector = selectors.DefaultSelector()
    try:
        selector.register(descriptor, event)
    except PermissionError:  # epoll's error for a device without a queue, /dev/null for example
        selector.close()
        return None
    return selector


def _give_up(wake: asyncio.Future[None]) -> None:
    if not wake.done():
        wake.set_exception(ClientDoesNotRead("the client does not read"))
