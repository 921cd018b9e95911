"""Processes that ask, decide, redeem and finish as fast as they can, until they are killed.

Run as `python hammer.py STORE KILLS SEED`. It forks children, a few at a time, and kills each one (SIGKILL)
after so many of its words. A word is written when a step is acknowledged, never before: `asked ID`,
`approved ID`, `ran ID` (an execution: what the redemption is for), `finished ID`. In the end it prints all
words that were said, whoever said them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import selectors
import signal
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from portbook.access.approval_state_and_binding import State, Undecidable
from portbook.clock import SystemClock
from portbook.errors import Reason, Refused
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.sqlite_store import Store
from support.approval_world import for_order, settled

CHILDREN = 3
HANDS = 4
"""How many things a child does at once."""


class Child:
    """One process that hammers."""

    def __init__(self, path: Path, seed: int, words: int) -> None:
        self._path = path
        self._random = random.Random(seed)
        self._seed = seed
        self._words = words
        self._asked = 0

    async def hammer(self) -> None:
        approvals = ApprovalStore(Store(self._path), SystemClock())
        await asyncio.gather(*(self._work(approvals) for _ in range(HANDS)))

    async def _work(self, approvals: ApprovalStore) -> None:
        steps = [self._ask, self._approve, self._redeem, self._redeem]
        while True:
            with contextlib.suppress(Refused, Undecidable):  # another was quicker
                await self._random.choice(steps)(approvals)

    async def _ask(self, approvals: ApprovalStore) -> None:
        self._asked += 1
        try:
            approval_id = await approvals.admit(for_order(self._seed * 100_000 + self._asked))
        except Refused as refusal:
            if refusal.reason is Reason.APPROVAL_REQUIRED:
                self._say("asked", str(refusal.details["approval_id"]))
        else:  # approved before it had an answer
            await self._run(approvals, approval_id)

    async def _approve(self, approvals: ApprovalStore) -> None:
        if found := approvals.tickets(State.PENDING, limit=4):
            approval_id = self._random.choice(found).id
            await approvals.decide(approval_id, "approve", by="hammer")
            self._say("approved", approval_id)

    async def _redeem(self, approvals: ApprovalStore) -> None:
        found = approvals.tickets(State.APPROVED, limit=4)
        if not found:
            await asyncio.sleep(0)
            return
        ticket = self._random.choice(found)
        assert isinstance(ticket.shown, dict)
        number = ticket.shown["order"]
        assert isinstance(number, int)
        await approvals.admit(for_order(number), ticket.id)
        await self._run(approvals, ticket.id)

    async def _run(self, approvals: ApprovalStore, approval_id: str) -> None:
        self._say("ran", approval_id)
        approvals.finish(approval_id, is_done=True)
        await settled(approvals)
        self._say("finished", approval_id)

    def _say(self, word: str, approval_id: str) -> None:
        os.write(self._words, f"{word} {approval_id}\n".encode())


def fork(path: Path, seed: int, others: Iterable[int]) -> tuple[int, int]:
    """Start a child; return its number and where its words come out."""
    listen, speak = os.pipe()
    process = os.fork()
    if process:
        os.close(speak)
        return process, listen
    for other in others:  # so that nobody speaks on when there is nobody left to listen
        os.close(other)
    try:
        asyncio.run(Child(path, seed, speak).hammer())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)  # nothing but a kill ends it


def main(path: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    said: list[bytes] = []
    heard = selectors.DefaultSelector()
    alive: dict[int, tuple[int, int]] = {}
    started = killed = 0
    while killed < kills:
        while len(alive) < CHILDREN and started < kills:
            process, listen = fork(path, seed * 1000 + started, alive)
            heard.register(listen, selectors.EVENT_READ)
            alive[listen] = process, chance.randint(1, 12)
            started += 1
        for key, _ in heard.select():
            listen = key.fd
            process, left = alive[listen]
            words = os.read(listen, 65536)
            said.append(words)
            left -= words.count(b"\n")
            alive[listen] = process, left
            if words and left > 0:
                continue
            os.kill(process, signal.SIGKILL)
            while words := os.read(listen, 65536):  # what it said before it died counts
                said.append(words)
            _, status = os.waitpid(process, 0)
            assert os.WIFSIGNALED(status), "a child ended by itself"
            heard.unregister(listen)
            os.close(listen)
            del alive[listen]
            killed += 1
    sys.stdout.buffer.write(b"".join(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
