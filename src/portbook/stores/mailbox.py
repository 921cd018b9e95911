"""`Mailbox`: what the processes that share a store tell each other.

A message goes to one node, which deletes it when it has taken it, or to all of them. What the streams of
sessions are made of stays for a while, because a stream that is resumed reads it again; all else only until
every node that lives has surely taken it. Numbers come from a row that every sender locks until its commit.
So a reader that has seen a number never finds a smaller one afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final

from portbook.clock import Clock, later
from portbook.stores.connection_clock_and_errors import Connection, prune_all
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["ALL_NODES", "CHANGE", "NOTICE", "DraftMail", "Mail", "Mailbox", "put_mail"]

# The recipient of a message to all nodes.
ALL_NODES: Final = ""

# What sessions' own streams are made of: a list or a resource has changed, and a message to one session.
CHANGE: Final = "change"
NOTICE: Final = "notice"

# How long these are kept: as long as a stream that nobody has read. And how long all others are.
_KEEP_S: Final = 600
_KEEP_CONTROL_S: Final = 60

# The most that are kept of either, and their characters; and the most that are taken at once.
_MAX_KEPT: Final = 10_000
_MAX_CHARACTERS: Final = 64 * 1024 * 1024
_PAGE: Final = 256


class DraftMail(NamedTuple):
    """A message to a node, or to all."""

    kind: str
    body: str = ""
    session: str = ""
    """The digest of the session that it concerns."""
    node: str = ALL_NODES


class Mail(NamedTuple):
    """A message, with its number."""

    sequence: int
    kind: str
    body: str
    session: str
    node: str


class Mailbox:
    """The messages of a store."""

    def __init__(self, store: StorePort, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def post(self, *drafts: DraftMail) -> Future[int]:
        """Send messages; the future is done once they are on disk.

        Raises `StoreError` where the store cannot be opened.
        """
        now = self._clock.now()
        return self._store.submit(lambda connection: put_mail(connection, now, drafts))

    async def last(self) -> int:
        """Return the number of the newest message.

        Raises `StoreError` where the store cannot be read.
        """
        return await self._store.fetch(_last, 0)

    async def after(self, sequence: int, node: str | None) -> list[Mail]:
        """Return the next messages to `node` and to all, in order; None for those to all alone.

        Raises `StoreError` where the store cannot be read.
        """
        row = (sequence, ALL_NODES, ALL_NODES if node is None else node, _PAGE)

        def find(connection: Connection) -> list[Mail]:
            found = connection.execute(
                "SELECT sequence, kind, body, session, node FROM mail "
                "WHERE sequence > ? AND (node = ? OR node = ?) ORDER BY sequence LIMIT ?",
                row,
            )
            return [Mail(int(each[0]), *(str(text) for text in each[1:])) for each in found]

        nothing: list[Mail] = []
        return await self._store.fetch(find, nothing)

    def take(self, node: str, sequence: int) -> None:
        """Delete what `node` was sent up to a number: it has it. A lost write is acceptable.

        Raises `StoreError` where the store cannot be opened.
        """
        row = (node, sequence)
        self._store.submit(
            lambda connection: connection.execute("DELETE FROM mail WHERE node = ? AND sequence <= ?", row)
        )

    async def nodes(self) -> set[str]:
        """Return the nodes that have not taken all that they were sent.

        Raises `StoreError` where the store cannot be read.
        """

        def find(connection: Connection) -> set[str]:
            found = connection.execute("SELECT DISTINCT node FROM mail WHERE node <> ?", (ALL_NODES,))
            return {str(each[0]) for each in found}

        nothing: set[str] = set()
        return await self._store.fetch(find, nothing)

    async def prune(self) -> None:
        """Delete old messages, and those beyond the limits, which streams do not share with all else.

        Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()
        for among, keep_s in (("IN", _KEEP_S), ("NOT IN", _KEEP_CONTROL_S)):
            which = f"kind {among} ('{CHANGE}', '{NOTICE}')"
            await prune_all(
                self._store, "mail", "sequence", f"{which} AND made_at < ?", (later(now, -keep_s),)
            )
            too_much = await self._store.fetch(partial(_beyond_limits, which), 0)
            await prune_all(self._store, "mail", "sequence", f"{which} AND sequence <= ?", (too_much,))


def put_mail(connection: Connection, now: str, drafts: Sequence[DraftMail]) -> int:
    """Send messages as part of a transaction; return the number of the first one.

    From here to the commit, no other transaction sends any.
    """
    taken = connection.execute(
        "INSERT INTO mail_counter (name, value) VALUES ('mail', ?) ON CONFLICT (name) "
        "DO UPDATE SET value = mail_counter.value + excluded.value RETURNING value",
        (len(drafts),),
    ).fetchone()
    assert taken is not None
    first = int(taken[0]) - len(drafts) + 1
    for number, draft in enumerate(drafts, first):
        connection.execute(
            "INSERT INTO mail (sequence, node, kind, session, body, made_at) VALUES (?, ?, ?, ?, ?, ?)",
            (number, draft.node, draft.kind, draft.session, draft.body, now),
        )
    return first


def _beyond_limits(which: str, connection: Connection) -> int:
    """Return the number of the newest message beyond the limits, of those that a condition selects."""
    return int(
        connection.execute(
            "SELECT coalesce(max(sequence), 0) FROM ("  # noqa: S608 - constants
            "SELECT sequence, row_number() OVER newest AS place, sum(length(body)) OVER newest AS size "
            f"FROM mail WHERE {which} WINDOW newest AS (ORDER BY sequence DESC)"
            ") AS weighed WHERE place > ? OR size > ?",
            (_MAX_KEPT, _MAX_CHARACTERS),
        ).get
    )


def _last(connection: Connection) -> int:
    found = connection.execute("SELECT value FROM mail_counter WHERE name = 'mail'").fetchone()
    return 0 if found is None else int(found[0])
