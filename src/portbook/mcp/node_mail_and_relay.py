"""`Node`: this process among those that share a store. It takes what the others tell it, and tells them.

One task takes new messages in the order of their numbers whenever the store has changed, and then wakes those
that wait for changes. What it takes is complete: a waiter that has looked before it was woken misses nothing.

`SessionRelay` hands what one session's client says to the node that runs the call it is about.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, cast

from portbook.canonical import json_bytes
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.messages_from_client import Key
from portbook.model import JSON, JSONObject, Kind
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.mailbox import ALL_NODES, CHANGE, NOTICE, DraftMail, Mail, Mailbox
from portbook.stores.wait_for_change import StoreWatch
from portbook.tools.toolset import Changed
from portbook.wire.jsonrpc import MAX_ID_BYTES
from portbook.wire.parsing import parse

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort, Version

__all__ = [
    "ANSWER",
    "CANCEL",
    "CHANGE",
    "NOTICE",
    "Bell",
    "Node",
    "NodeLease",
    "SessionRelay",
    "change_of",
    "relay_changes",
]

# `NodeLease`: the name of this process among those that share a store, and whether the others live.


class NodeLease:
    """A name that is never used twice, held while this process lives."""

    def __init__(self, store: StorePort, draw: Callable[[int], bytes]) -> None:
        """Hold a name in `store`; `draw` gives the random bytes that it is made of."""
        self._store = store
        self._draw = draw
        self.name = ""
        self._owner = store.owner(self._draw_name)
        self._is_held = False

    def _draw_name(self) -> str:
        self.name = self._draw(8).hex()
        return self.name

    async def renew(self) -> None:
        """Hold a name; a new one, where the time of the last one has run out.

        Raises `StoreError` where that cannot be stored.
        """
        if self._is_held and self._owner.may_start(self.name):
            return
        since = self._owner.hold()
        self.name = await asyncio.wrap_future(self._store.submit(self._owner.claim))
        self._owner.confirm(self.name, since)
        self._is_held = True

    async def lives(self, name: str) -> bool:
        """Return whether the process with this name lives; one that does not never comes back.

        Raises `StoreError` where the store cannot be read.
        """
        return await self._store.fetch(lambda connection: self._owner.lives(name, connection), True)

    def release(self) -> None:
        """Let other processes know that this one has ended, after the store was closed."""
        self._owner.release()


# The messages to all that are kept in memory; a stream that resumes before them reads the store.
_RECENT: Final = 1000

# How long the store is trusted to tell of its changes by itself, and how often old rows are deleted.
_LOOK_S: Final = 1.0
_PRUNED_EVERY_S: Final = 60.0

# Differs from every version.
_NEVER: Final[Version] = (-1, -1)

Handle = Callable[[Mail], Awaitable[None]]
Prune = Callable[[], Awaitable[None]]


class Bell:
    """Wakes those that wait for something to happen, without one that happens just before being missed."""

    def __init__(self) -> None:
        self.turn = 0
        """How often it has rung; to wait for the next time."""
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake all that wait."""
        self.turn += 1
        self._rung.set()
        self._rung = asyncio.Event()

    async def wait(self, turn: int, timeout_s: float) -> bool:
        """Wait until it has rung after `turn`; return False where it has not in time.

        In a task: whoever waits has written to the store before, so it is beyond a call's first step.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while self.turn == turn:
                    await self._rung.wait()
        except TimeoutError:
            return False
        return True


class Node:
    """This process, its mail, and whether the other processes live."""

    def __init__(
        self,
        lease: NodeLease,
        mailbox: Mailbox,
        version: Callable[[], Version],
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Be the process that `lease` names; `version` differs after every change of the store."""
        self.at = 0
        """The number of the last message that was taken."""
        self._lease = lease
        self._mailbox = mailbox
        self._version = version
        self._watch = StoreWatch(version)
        self._warn = warn
        self._has_warned = False
        self._handlers: dict[str, list[Handle]] = {}
        self._pruners: list[Prune] = [self._prune_mail]
        self._recent: deque[Mail] = deque(maxlen=_RECENT)
        self._recent_after = 0
        self.store_bell = Bell()
        """Rings when the store has changed."""
        self.is_closing = False
        """Whether this process is about to end."""
        self.mail_bell = Bell()
        """Rings when messages were taken."""
        self._pump: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pruned_at = time.monotonic()

    @property
    def name(self) -> str:
        """Return the name of this node."""
        return self._lease.name

    def on(self, kind: str, handle: Handle) -> None:
        """Call `handle` with each message of a kind, this node's own included."""
        self._handlers.setdefault(kind, []).append(handle)

    def on_prune(self, prune: Prune) -> None:
        """Call `prune` once a minute, to delete old rows."""
        self._pruners.append(prune)

    def start(self) -> None:
        """Begin to take messages. In the event loop."""
        self._loop = asyncio.get_running_loop()
        self._pump = self._loop.create_task(self._take_mail())
        self._pump.add_done_callback(self._tell_end)

    async def close(self) -> None:
        """Stop taking messages; what this node ran has ended."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait((self._pump,))
        self.mail_bell.ring()
        self.store_bell.ring()

    def release(self) -> None:
        """Let other nodes know that this one has ended: after all that it ran is stored."""
        self._lease.release()

    async def lives(self, name: str) -> bool:
        """Return whether the node with this name lives; one that does not never comes back.

        Raises `StoreError` where the store cannot be read.
        """
        return name == self.name or await self._lease.lives(name)

    def post(self, *drafts: DraftMail) -> Future[int]:
        """Send messages, from any thread; the future is done once they are stored.

        Raises `StoreError` where the store cannot be opened.
        """
        posted = self._mailbox.post(*drafts)
        posted.add_done_callback(self._poke)
        return posted

    async def tell(self, *drafts: DraftMail) -> bool:
        """Send messages; return whether they were stored."""
        try:
            await asyncio.wrap_future(self.post(*drafts))
        except StoreError as error:
            self._complain(error)
            return False
        return True

    def wake(self) -> None:
        """Look for changes now: this process has changed something."""
        self._watch.wake()

    async def told_all(self, after: int) -> list[Mail]:
        """Return what all nodes were told after a number, as far as this one has taken it.

        Raises `StoreError` where the store cannot be read.
        """
        if after >= self._recent_after:
            return [mail for mail in self._recent if mail.sequence > after]
        found = await self._mailbox.after(after, None)
        return [mail for mail in found if mail.sequence <= self.at]

    async def _take_mail(self) -> None:
        seen: Version = _NEVER
        is_first = True
        while True:
            try:
                await self._lease.renew()
                version = self._version()
                if is_first:
                    self.at = self._recent_after = await self._mailbox.last()
                    is_first = False
                if version != seen:
                    await self._take_new()
                    seen = version  # not before: what could not be read is read again
                    self.store_bell.ring()
                await self._prune()
            except StoreError as error:
                self._complain(error)
                await asyncio.sleep(_LOOK_S)
            await self._watch.since(seen, _LOOK_S)

    async def _take_new(self) -> None:
        while mails := await self._mailbox.after(self.at, self.name):
            for mail in mails:
                await self._handle(mail)
                self.at = mail.sequence
                if mail.kind in (CHANGE, NOTICE):
                    if len(self._recent) == _RECENT:
                        self._recent_after = self._recent[0].sequence
                    self._recent.append(mail)
            self.mail_bell.ring()
            if any(mail.node != ALL_NODES for mail in mails):
                self._mailbox.take(self.name, self.at)

    async def _handle(self, mail: Mail) -> None:
        for handle in self._handlers.get(mail.kind, ()):
            try:
                await handle(mail)
            except Exception as error:  # noqa: BLE001 - one message must not keep the next ones away
                self._warn(f"a message of a different process could not be used: {type(error).__name__}")

    async def _prune_mail(self) -> None:
        """Delete old messages, and what nodes were sent that are gone: nobody takes that."""
        last = await self._mailbox.last()
        for node in await self._mailbox.nodes():
            if not await self.lives(node):
                self._mailbox.take(node, last)
        await self._mailbox.prune()

    async def _prune(self) -> None:
        now = time.monotonic()
        if now - self._pruned_at >= _PRUNED_EVERY_S:
            self._pruned_at = now
            for prune in self._pruners:
                await prune()

    def _tell_end(self, pump: asyncio.Task[None]) -> None:
        if not pump.cancelled() and (error := pump.exception()) is not None:
            self._warn(f"messages of other processes are no longer taken: {type(error).__name__}; restart")

    def _poke(self, _: Future[int]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._watch.wake)

    def _complain(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"other processes cannot be told of what happens here: {error}")


# What nodes hand to each other: answers and cancellations of clients, and changes of lists and resources.
#
# `SessionRelay` hands what one session's client says to the node that runs the call it is about.

# The client answers a question; the client cancels a request.
ANSWER: Final = "answer"
CANCEL: Final = "cancel"

# The id of a question: the node that asks, and what only that node knows.
_QUESTION: Final = re.compile(r"([0-9a-f]{16})\.[0-9a-f]{12}-[0-9]{1,9}", re.ASCII)

# What a client can say to other nodes at once, and each second: more than it can have asked for, or be asked.
_BURST: Final = 64.0
_EACH_SECOND: Final = 4.0


class SessionRelay:
    """The nodes, as the connection of one session sees them."""

    def __init__(self, node: Node, session: str, tick: Callable[[], float] = time.monotonic) -> None:
        """Speak for the session with this digest; `tick` returns seconds."""
        self._node = node
        self.session = session
        self._tick = tick
        self._left, self._counted = _BURST, tick()

    def node(self) -> str:
        """Return the name of this node, with which the ids of its questions begin."""
        return self._node.name

    def asker_of(self, message: JSONObject) -> str | None:
        """Return the node whose question a response answers; None for this one, and for what answers none."""
        identifier = message.get("id")
        found = _QUESTION.fullmatch(identifier) if isinstance(identifier, str) else None
        return None if found is None or found[1] == self._node.name else found[1]

    async def answer(self, node: str, message: JSONObject) -> bool:
        """Hand an answer to the node that asks; return False where that is gone, or this says too much."""
        if not self._may_tell():
            return False
        try:
            if not await self._node.lives(node):
                return False
        except StoreError:
            return False
        body = json_bytes(message).decode()
        return await self._node.tell(DraftMail(ANSWER, body, self.session, node))

    def cancel(self, key: Key) -> bool:
        """Cancel a request that a different node may run; return whether they were told."""
        if isinstance(key, str) and len(key) > MAX_ID_BYTES:
            return False  # no request has such an id
        if not self._may_tell():
            return False
        try:
            self._node.post(DraftMail(CANCEL, json_bytes(key).decode(), self.session))
        except StoreError:
            return False
        return True

    def _may_tell(self) -> bool:
        """Count a message of the client to other nodes; return False where it sends too many."""
        now = self._tick()
        self._left = min(_BURST, self._left + (now - self._counted) * _EACH_SECOND)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def emit(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Send a message that belongs to no request, to whichever node the client listens at."""
        if is_wanted():
            with contextlib.suppress(StoreError):  # as where nobody listens
                self._node.post(DraftMail(NOTICE, message.decode(), self.session))
        return True


# Changed lists and resources: all nodes are told of them, and pass on what they are told.


def relay_changes(node: Node, changes: ChangeFeed) -> None:
    """Publish each change of `changes` on all nodes: on this one, too, it comes back as a message."""

    def relay(changed: Changed) -> bool:
        def deliver_alone(posted: Future[int]) -> None:
            if posted.exception() is not None:  # the clients of this node at least
                changes.deliver(changed)

        try:
            posted = node.post(DraftMail(CHANGE, json_bytes([changed.kind, changed.uri]).decode()))
        except StoreError:
            return False
        posted.add_done_callback(deliver_alone)
        return True

    async def deliver(mail: Mail) -> None:
        changes.deliver(change_of(mail))

    changes.relay = relay
    node.on(CHANGE, deliver)


def change_of(mail: Mail) -> Changed:
    """Return the change that all nodes were told of."""
    kind, uri = cast("list[JSON]", parse(mail.body.encode()))
    return Changed(cast("Kind", kind), cast("str | None", uri))
