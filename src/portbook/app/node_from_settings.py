"""`SharedParts`: what makes this process a node: its name, its mail, and what other nodes read of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from portbook.clock import Clock
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.node_mail_and_relay import Node, NodeLease, relay_changes
from portbook.mcp.shared_tasks import SharedTasks
from portbook.mcp.task_board import TaskBoard
from portbook.stores.mailbox import Mailbox
from portbook.stores.stream_rows import StreamRows
from portbook.stores.task_rows import TaskRows

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["SharedParts"]


class SharedParts:
    """The parts of an app that other processes with the same store have a part in."""

    def __init__(
        self,
        store: StorePort,
        clock: Clock,
        draw: Callable[[int], bytes],
        tasks: TaskBoard,
        changes: ChangeFeed,
        warn: Callable[[str], None],
    ) -> None:
        """Share `tasks` and `changes` through `store`; `draw` gives the random bytes of this node's name."""
        self.node = Node(NodeLease(store, draw), Mailbox(store, clock), store.version, warn)
        self.streams = StreamRows(store, clock)
        shared = SharedTasks(self.node, TaskRows(store, clock), tasks, clock)
        tasks.elsewhere = shared
        relay_changes(self.node, changes)
        self.node.on_prune(shared.prune)
        self.node.on_prune(self._prune_streams)
        self._closing: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def on_close(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Await `close` when this process ends, while the store can still be written."""
        self._closing.append(close)

    async def close(self) -> None:
        """Store what other nodes are to read of this one."""
        for close in self._closing:
            await close()
        await self.node.close()

    async def _prune_streams(self) -> None:
        gone = [node for node in await self.streams.nodes() if node and not await self.node.lives(node)]
        await self.streams.prune(gone)
