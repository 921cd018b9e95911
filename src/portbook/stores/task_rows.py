"""`TaskRows`: tasks of MCP clients with their whole state, for whichever process is asked for them.

A task belongs to the node that runs it, which alone changes its row. Two changes can come from elsewhere: its
cancellation, and the end of a task whose node is gone. A task that has ended does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from portbook.clock import Clock, later
from portbook.stores.connection_clock_and_errors import Connection, prune_all
from portbook.stores.mailbox import DraftMail, put_mail
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["MAX_OUTLINE", "StoredTask", "TaskRows"]

# How long a task is kept after its last change: as long as it can be asked for, and a little more.
_KEEP_S: Final = 3660

# The most tasks of one caller that are listed.
_MAX_LISTED: Final = 1000

# The most characters that are read of a task for a list: its line for that is shorter.
MAX_OUTLINE: Final = 4096

_COLUMNS: Final = "id, bound, node, number, is_over, state"


class StoredTask(NamedTuple):
    """A task as its node has stored it."""

    id: str
    bound: str
    """The digest of its caller's key."""
    node: str
    number: int
    """Counts its changes."""
    is_over: bool
    state: str
    """What its caller sees of it, and why it has failed, as JSON; a line before that has what lists show."""
    is_outline: bool = False
    """Whether `state` is only what a list shows."""


class TaskRows:
    """The tasks of a store."""

    def __init__(self, store: StorePort, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def save(self, task: StoredTask, mail: Sequence[DraftMail] = ()) -> Future[bool]:
        """Store a task as it is now, and send `mail` with it; the future tells whether that counts.

        It does not where the task has ended in the store already.

        Raises `StoreError` where the store cannot be opened.
        """
        now = self._clock.now()
        row = (task.id, task.bound, task.node, task.number, int(task.is_over), task.state, now, now)

        def write(connection: Connection) -> bool:
            saved = connection.execute(
                "INSERT INTO task (id, bound, node, number, is_over, state, made_at, changed_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET number = excluded.number, "
                "is_over = excluded.is_over, state = excluded.state, changed_at = excluded.changed_at "
                "WHERE task.is_over = 0 RETURNING id",
                row,
            ).fetchone()
            if saved is not None and mail:
                put_mail(connection, now, mail)
            return saved is not None

        return self._store.submit(write)

    async def find(self, ids: Sequence[str]) -> list[StoredTask]:
        """Return those of these tasks that are stored.

        Raises `StoreError` where the store cannot be read.
        """

        def look(connection: Connection) -> list[StoredTask]:
            found: list[StoredTask] = []
            for each in ids:
                row = connection.execute(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (each,)).fetchone()  # noqa: S608 - a constant
                if row is not None:
                    found.append(_task_of(row))
            return found

        nothing: list[StoredTask] = []
        return await self._store.fetch(look, nothing)

    async def of(self, bound: str) -> list[StoredTask]:
        """Return all tasks of a caller, the oldest first, as lists show them: without their results.

        Raises `StoreError` where the store cannot be read.
        """
        row = (MAX_OUTLINE, bound, later(self._clock.now(), -_KEEP_S), _MAX_LISTED)

        def look(connection: Connection) -> list[StoredTask]:
            found = connection.execute(
                "SELECT id, bound, node, number, is_over, substr(state, 1, ?) FROM task "
                "WHERE bound = ? AND (is_over = 0 OR changed_at >= ?) ORDER BY made_at, id LIMIT ?",
                row,
            )
            outlines = [_outline_of(_task_of(each)) for each in list(found)]
            return [each if each.is_outline else _whole(connection, each) for each in outlines]

        nothing: list[StoredTask] = []
        return await self._store.fetch(look, nothing)

    async def nodes(self) -> set[str]:
        """Return the nodes of tasks that have not ended.

        Raises `StoreError` where the store cannot be read.
        """

        def look(connection: Connection) -> set[str]:
            found = connection.execute("SELECT DISTINCT node FROM task WHERE is_over = 0")
            return {str(each[0]) for each in found}

        nothing: set[str] = set()
        return await self._store.fetch(look, nothing)

    async def prune(self, gone: Sequence[str]) -> None:
        """Delete tasks that ended a while ago, or that a node left behind which is `gone`.

        Raises `StoreError` where that cannot be written.
        """
        since = later(self._clock.now(), -_KEEP_S)

        await prune_all(self._store, "task", "id", "is_over = 1 AND changed_at < ?", (since,))
        for node in gone:
            await prune_all(self._store, "task", "id", "node = ? AND changed_at < ?", (node, since))


def _task_of(row: tuple[object, ...]) -> StoredTask:
    identifier, bound, node, number, is_over, state = row
    return StoredTask(str(identifier), str(bound), str(node), int(str(number)), bool(is_over), str(state))


def _whole(connection: Connection, task: StoredTask) -> StoredTask:
    """Return a task that has no line for lists: it is short, or a different version has stored it."""
    if len(task.state) < MAX_OUTLINE:
        return task
    row = connection.execute(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (task.id,)).fetchone()  # noqa: S608 - a constant
    assert row is not None  # of the same state of the store
    return _task_of(row)


def _outline_of(task: StoredTask) -> StoredTask:
    outline, line_end, _ = task.state.partition("\n")
    return task._replace(state=outline, is_outline=True) if line_end else task
