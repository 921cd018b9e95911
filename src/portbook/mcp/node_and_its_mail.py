"""`Node`: this process among those that share a store. It takes what the others tell it, and tells them.

One task takes new messages in the order of their numbers whenever the store has changed, and then wakes those
that wait for changes. What it takes is complete: a waiter that has looked before it was woken misses nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.mailbox import ALL_NODES, CHANGE, NOTICE, DraftMail, Mail, Mailbox
from portbook.stores.wait_for_change import StoreWatch

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort, Version

__all__ = ["CHANGE", "NOTICE", "Bell", "Node", "NodeLease"]

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
