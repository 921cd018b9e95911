"""`StreamCopies`: writes the streams of this node's calls to the store, where other nodes read them.

Reports are written together, a few times a second; questions and answers at once. One transaction has what
all streams have to write. Nobody waits for it: the client that is connected here reads from memory.
"""

from __future__ import annotations

import asyncio
from typing import Final

from portbook.doors.http.mcp.resumable_stream import EventStream
from portbook.mcp.node import Node
from portbook.stores.errors import StoreError, UnknownOutcome
from portbook.stores.stream_rows import StreamChange, StreamRows

__all__ = ["StreamCopies"]

# How long reports wait for each other, and a failed write for the next attempt.
_GATHER_S: Final = 0.05
_RETRY_S: Final = 1.0

# How long a stream waits to be stored before its first event; then it can be resumed at this node alone.
_PATIENCE_S: Final = 2.0


class _Copy:
    """What is still to be written of one stream."""

    def __init__(self, copies: StreamCopies, session: str, name: str) -> None:
        self._copies = copies
        self._session = session
        self._name = name
        self._added: dict[int, str] = {}
        self._dropped: list[int] = []
        self._is_ended = self._is_expired = False

    def add(self, position: int, message: bytes, *, is_vital: bool) -> None:
        """Add a message."""
        self._added[position] = message.decode()
        self._copies.schedule(self, 0.0 if is_vital else _GATHER_S)

    def drop(self, position: int) -> None:
        """Drop a message, which may not have been written yet."""
        if self._added.pop(position, None) is None:
            self._dropped.append(position)
        self._copies.schedule(self, _GATHER_S)

    def end(self, *, is_answered: bool) -> None:
        """End it. Where this process ends before there is an answer, other nodes see to its end."""
        if is_answered or not self._copies.is_closing:
            self._is_ended = True
            self._copies.schedule(self, 0.0)

    def expire(self) -> None:
        """Delete it: no client can resume it."""
        self._is_expired = True
        self._added, self._dropped = {}, []
        self._copies.schedule(self, _GATHER_S)

    def take(self) -> StreamChange:
        """Return what is to be written, and begin anew."""
        change = StreamChange(
            self._session,
            self._name,
            tuple(self._added.items()),
            tuple(self._dropped),
            self._is_ended,
            self._is_expired,
        )
        self._added, self._dropped = {}, []
        return change

    def put_back(self, change: StreamChange) -> None:
        """Take back what could not be written."""
        self._added = dict(change.added) | self._added
        self._dropped = [*change.dropped, *self._dropped]


class StreamCopies:
    """The streams of this node that other nodes can read."""

    def __init__(self, rows: StreamRows, node: Node) -> None:
        """Write to `rows` in the name of `node`."""
        self._rows = rows
        self._node = node
        self._changed: dict[_Copy, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._keeping: set[asyncio.Task[None]] = set()
        self.is_closing = False
        """Whether this process is about to end."""

    def keep(self, session: str, stream: EventStream, request: str) -> asyncio.Task[None]:
        """Store a stream of a session, by its digest; `request` is the id that it answers, as JSON.

        Return the task that ends when it is stored, or has waited long enough; then it is stored later.
        """
        loop = asyncio.get_running_loop()
        keeping = loop.create_task(self._keep(session, stream, request))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)
        return loop.create_task(_wait_for(keeping))

    async def _keep(self, session: str, stream: EventStream, request: str) -> None:
        try:
            await self._rows.begin(session, stream.name, self._node.name, request)
        except UnknownOutcome:
            pass  # if its row is there, it has to be filled
        except StoreError:
            return
        stream.copy_into(_Copy(self, session, stream.name))

    def schedule(self, copy: _Copy, delay_s: float) -> None:
        """Write what has changed in a copy, within a time."""
        self._changed[copy] = None
        if self._writing is not None:
            return  # which goes on until nothing is left
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_s
        if self._timer is not None and self._due <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due, self._timer = due, loop.call_later(delay_s, self._begin)

    async def flush(self) -> None:
        """Write what is left: this process ends."""
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=_PATIENCE_S)
        if self._timer is not None:
            self._begin()
        if self._writing is not None:
            await asyncio.wait((self._writing,), timeout=_PATIENCE_S)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._writing = asyncio.get_running_loop().create_task(self._write())
        self._writing.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._writing = None
        if self._changed:
            self.schedule(next(iter(self._changed)), _GATHER_S)

    async def _write(self) -> None:
        while self._changed:
            copies, self._changed = list(self._changed), {}
            changes = [copy.take() for copy in copies]
            try:
                await self._rows.change(changes)
            except StoreError:
                for copy, change in zip(copies, changes, strict=True):
                    copy.put_back(change)
                self._changed = dict.fromkeys(copies) | self._changed
                await asyncio.sleep(_RETRY_S)
            else:
                self._node.wake()
                if self._changed:
                    await asyncio.sleep(_GATHER_S)  # others may have more to write by then


async def _wait_for(keeping: asyncio.Task[None]) -> None:
    await asyncio.wait((keeping,), timeout=_PATIENCE_S)
