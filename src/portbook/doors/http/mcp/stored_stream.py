"""`StoredStream`: a stream as the store has it, read by a client that resumes, at whichever node.

It goes on while the node lives that fills it. If that node is gone, the outcome of its calls is unknown, and
the stream ends with that.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

from portbook.doors.http.mcp.keep_alive import KEEP_ALIVE, SILENCE_S
from portbook.doors.http.mcp.resumable_stream import StreamPosition, Write
from portbook.errors import Failed, Reason
from portbook.mcp.node import Node
from portbook.stores.errors import StoreError
from portbook.stores.mailbox import DraftMail
from portbook.stores.stream_rows import StreamRow, StreamRows
from portbook.wire.jsonrpc import mcp_refusal_frame
from portbook.wire.sse import event

__all__ = ["READ", "StoredStream"]

# A stream of a node is read elsewhere.
READ: Final = "read"

# How often it is checked whether the node that fills a stream lives.
_LOOK_S: Final = 1.0


class StoredStream:
    """One stream of a session, in the store."""

    def __init__(self, rows: StreamRows, node: Node, session: str, name: str, revision: str) -> None:
        """Read the stream with this name, of the session with this digest, which speaks `revision`."""
        self._rows = rows
        self._node = node
        self._session = session
        self._name = name
        self._revision = revision
        self._reader = os.urandom(8).hex()

    @property
    def is_read(self) -> bool:
        """Return False: a new reader takes the place of one that it may have."""
        return False

    async def enter(self, row: StreamRow) -> None:
        """Become its only reader, at all nodes; `row` is the stream's.

        Raises `StoreError` where that cannot be written.
        """
        told = () if row.is_ended else (DraftMail(READ, self._name, self._session, row.node),)
        await self._rows.read_by(self._session, self._name, self._reader, told)
        self._node.wake()

    async def copy_to(
        self, write: Write, position: StreamPosition, may_read: Callable[[], bool] = lambda: True
    ) -> None:
        """Write events from `position` on, until the stream ends or gets a new reader."""
        try:
            await self._copy(write, position.after or 0, may_read)
        except StoreError:
            return  # the client resumes, and the store may be back by then

    async def _copy(self, write: Write, at: int, may_read: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        spoke, is_alive = loop.time(), True
        while may_read() and not self._node.is_closing:
            turn = self._node.store_bell.turn
            found = await self._rows.after(self._session, self._name, at)
            if found is None or found.row.reader != self._reader:
                return
            for at, message in found.events:
                await write(event(message.encode(), f"{self._name}-{at}"))
                spoke = loop.time()
            if found.events:
                continue
            if found.row.is_ended:
                return
            if not is_alive:  # and what it wrote last was seen since that is known
                await self._rows.end(self._session, self._name, self._lost(found.row), at)
                continue
            is_alive = await self._node.lives(found.row.node)
            if (
                is_alive
                and not await self._node.store_bell.wait(turn, _LOOK_S)
                and loop.time() - spoke >= SILENCE_S
            ):
                await write(KEEP_ALIVE)
                spoke = loop.time()

    def _lost(self, row: StreamRow) -> str:
        """Return the answer to a request whose node is gone."""
        lost = Failed(Reason.OUTCOME_UNKNOWN)
        return mcp_refusal_frame(lost, row.request.encode(), self._revision).decode()
