"""Nodes that share a database, in simulated time: clocks that drift, messages lost, late and repeated, kills.

Nothing here waits or reads a clock, so that thousands of runs take seconds, and a seed repeats a run exactly.
What is decided is decided by the rules of the product: `access/approval_state_and_binding.py` says which
state follows which and what refuses a call, `stores/postgres/leases.py` who may act and who is gone. The
rest is what surrounds them:

- the database runs a transaction when its message arrives, whole or not at all;
- what it commits may be seen only later, and its rows are locked until then;
- a message may be lost on its way there or back, come late, or come twice; the database may be away;
- a node asks, waits, and may hear of what it asked for long after it gave up;
- a node may be killed at any moment, may hang, and its clock may be a tenth too fast or too slow;
- an operator approves calls, and where one is `unknown` looks at what it did: if nothing, it is asked anew.

A machine that stands still for seconds between its last look at the clock and the act is not simulated: no
lease helps there (see `MOST_ACT_S`).
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from portbook.access.approval_state_and_binding import TRANSITIONS, Ask, State, Ticket, decided, refuse, seen
from portbook.stores.postgres.leases import LEASE_TERMS, Lease, LeaseTerms, extended, is_lost

NODES = 3
JOBS = 4
ENDS_AT = 150.0
MOST_DRIFT = 0.1
MOST_ACT_S = 1.5
"""Between the last look at the clock and the act."""

Steps = Generator[Any, Any, None]


class Broken(Exception):
    """A promise that was not kept."""


class InDoubt(Exception):
    """No answer came: what was asked for has happened, or has not, or will."""


class Away(Exception):
    """The database said that it did nothing."""


LOST = "lost"
"""What the database answers to a node whose lease is lost."""


@dataclass(frozen=True)
class Rules:
    """What nodes and database go by: the rules of the product, but for those that a test breaks."""

    terms: LeaseTerms = LEASE_TERMS
    may_start: Callable[[Lease, float], bool] = Lease.may_start
    extended: Callable[[float, float, LeaseTerms], float | None] = extended
    counts_from_asking: bool = True
    """Whether a lease counts from when its renewal was asked for, not from when the answer came."""
    checks_owner: bool = True
    """Whether a call starts only under the lease that it was redeemed under."""
    compares: bool = True
    """Whether a redemption checks the ticket again inside its transaction."""
    keeps: bool = True
    """Whether a node whose lease is lost may write nothing of its calls any more."""
    names_redemption: bool = True
    """Whether what is given back is that very redemption."""
    runs_in_doubt: bool = False
    """Whether a call runs although its redemption was not acknowledged."""
    deletes_lost: bool = True
    """Whether who takes a lease for lost deletes it, which an unseen renewal prevents."""
    intends_first: bool = True
    """Whether the intent is on disk before the call starts."""


DELETED = float("-inf")
"""The time of a lease that was deleted: its name is known, because names are used once."""


@dataclass
class Database:
    """Tickets and leases, and the only clock that counts for other nodes."""

    now: float = 0.0
    tickets: dict[str, Ticket] = field(default_factory=dict[str, Ticket])
    leases: dict[str, float] = field(default_factory=dict[str, float])
    locked: set[str] = field(default_factory=set[str])
    """The rows of what is committed and not seen yet."""
    deletes_lost: bool = True

    def state_of(self, ticket: Ticket) -> State:
        """What every node but its owner takes the ticket for."""
        owner = ticket.owner or ""
        is_gone = is_lost(self.leases.get(owner, 0.0), self.now)
        if is_gone and self.deletes_lost and ticket.state is State.RUNNING:
            if owner in self.locked:
                is_gone = False
            else:
                self.leases[owner] = DELETED
        return seen(ticket, text(self.now), is_owner_alive=not is_gone).state

    def attempt(self, work: Callable[[Database], Any]) -> tuple[Any, Database, set[str]]:
        """Run a transaction that nobody sees; return its result, what is then, and the rows that it wrote."""
        then = Database(self.now, dict(self.tickets), dict(self.leases), self.locked, self.deletes_lost)
        result = work(then)
        written = {
            name
            for before, after in ((self.tickets, then.tickets), (self.leases, then.leases))
            for name in after
            if before.get(name) != after[name]
        }
        return result, then, written

    def take(self, then: Database, written: set[str]) -> None:
        """Let everybody see what a transaction wrote."""
        self.tickets |= {name: each for name, each in then.tickets.items() if name in written}
        self.leases |= {name: each for name, each in then.leases.items() if name in written}

    def write(self, ticket: Ticket) -> None:
        self.tickets[ticket.id] = ticket


@dataclass
class Node:
    """A process, and the file of its intents, which outlives it."""

    number: int
    fast: float
    """How many of its seconds pass in a second of the database."""
    ahead: float
    is_alive: bool = True
    lease: Lease | None = None
    intents: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    hangs_until: float = 0.0


def text(time: float) -> str:
    """A time as the rules compare it."""
    return f"{time:015.6f}"


class Simulation:
    """One run; `run` returns how often what happened, or raises `Broken`."""

    def __init__(self, seed: int, rules: Rules) -> None:
        self.chance = random.Random(seed)
        self.rules = rules
        self.now = 0.0
        self.database = Database(deletes_lost=rules.deletes_lost)
        self.happened: Counter[str] = Counter()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._nodes = [self._new_node() for _ in range(NODES)]
        self._away: list[tuple[float, float]] = [
            (at, at + self.chance.expovariate(1 / 10)) for at in self._moments(1 / 90)
        ]
        self._ran: Counter[str] = Counter()
        """How often the effect of each job came about, and of each ticket."""
        self._unknown: set[str] = set()
        """The tickets that an operator has seen as unknown."""
        self._repeated: set[str] = set()

    def run(self) -> Counter[str]:
        for job in range(JOBS):
            self._ask(f"job{job}")
        self._start(self._operate())
        for node in self._nodes:
            self._start(self._beat(node), node)
        for at in self._moments(1 / 40):
            self._later(at, self._kill)
        for at in self._moments(1 / 50):
            self._later(at, self._hang)
        while self._events and self.now < ENDS_AT:
            self.now, _, event = heapq.heappop(self._events)
            self.database.now = self.now
            event()
        self._check_end()
        return self.happened

    # -- chance

    def _moments(self, per_second: float) -> list[float]:
        found, at = list[float](), self.chance.expovariate(per_second)
        while at < ENDS_AT:
            found.append(at)
            at += self.chance.expovariate(per_second)
        return found

    def _delay(self) -> float:
        draw = self.chance.random()
        if draw < 0.9:
            return self.chance.uniform(0.001, 0.1)
        return self.chance.uniform(0.1, 3.0) if draw < 0.97 else self.chance.uniform(3.0, 40.0)

    def _new_node(self) -> Node:
        self._count += 1
        fast = 1 + self.chance.uniform(-MOST_DRIFT, MOST_DRIFT)
        return Node(self._count, fast, self.chance.uniform(0, 1000))

    # -- the run of events

    def _later(self, at: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (at, self._count, event))

    def _start(self, steps: Steps, node: Node | None = None, after: float = 0.0) -> None:
        self._later(self.now + after, lambda: self._step(steps, node))

    def _step(self, steps: Steps, node: Node | None, value: Any = None) -> None:
        if node is not None and not node.is_alive:
            return
        try:
            wanted = steps.throw(value) if isinstance(value, Exception) else steps.send(value)
        except StopIteration:
            return
        if isinstance(wanted, float):
            self._later(self.now + wanted, lambda: self._step(steps, node))
        else:
            self._send(wanted, steps, node)

    def _send(self, work: Callable[[Database], Any], steps: Steps, node: Node | None) -> None:
        """Send a transaction to the database; its answer goes on with `steps`, or a doubt does."""
        answered = [False]

        def go_on(value: Any) -> None:
            if not answered[0]:
                answered[0] = True
                self._step(steps, node, value)

        def arrive() -> None:
            if any(begin <= self.now < end for begin, end in self._away):
                self.happened["database away"] += 1
                self._answer(node, go_on, Away())
            else:
                self._commit(work, arrive, lambda result: self._answer(node, go_on, result))

        is_lossy = node is not None  # the operator's terminal is beside the database
        begins = self.now if node is None else max(self.now, node.hangs_until)
        if not is_lossy or self.chance.random() > 0.03:
            self._later(begins + self._delay(), arrive)
        else:
            self.happened["request lost"] += 1
        if is_lossy and self.chance.random() < 0.1:
            self.happened["request repeated"] += 1
            self._later(begins + self._delay() + self.chance.uniform(0, 20), arrive)
        # Some wait for as long as it takes: a connection that hangs.
        patience = 5.0 if self.chance.random() < 0.7 else 120.0
        self._later(self.now + patience, lambda: go_on(InDoubt()))

    def _commit(
        self, work: Callable[[Database], Any], again: Callable[[], None], done: Callable[[Any], None]
    ) -> None:
        """Run a transaction; a standby may confirm it late, and what it wrote is locked until then."""
        result, then, written = self.database.attempt(work)
        if written & self.database.locked:
            self.happened["wait for a row"] += 1
            self._later(self.now + 0.05, again)
            return
        if not written or self.chance.random() > 0.1:
            self.database.take(then, written)
            done(result)
            return

        def show() -> None:
            self.database.locked -= written
            self.database.take(then, written)
            done(result)

        self.happened["commit seen late"] += 1
        self.database.locked |= written
        self._later(self.now + self.chance.uniform(0, 10), show)

    def _answer(self, node: Node | None, go_on: Callable[[Any], None], value: Any) -> None:
        if node is not None and self.chance.random() < 0.04:
            self.happened["answer lost"] += 1
            return
        begins = self.now if node is None else max(self.now, node.hangs_until)
        self._later(begins + self._delay(), lambda: go_on(value))

    def _kill(self) -> None:
        place = self.chance.randrange(NODES)
        self._nodes[place].is_alive = False
        self._nodes[place] = node = self._new_node()
        self._start(self._beat(node), node)
        self.happened["kill"] += 1

    def _hang(self) -> None:
        self.chance.choice(self._nodes).hangs_until = self.now + self.chance.expovariate(1 / 15)
        self.happened["hang"] += 1

    # -- the operator, and those who ask

    def _ask(self, job: str) -> None:
        self._count += 1
        ask = ask_of(job)
        ticket = Ticket(
            id=f"t{self._count}",
            state=State.PENDING,
            binding=job,
            tool=ask.tool,
            shown=None,
            tool_digest="",
            policy_digest="",
            caller=ask.caller,
            session=None,
            rule="",
            place="",
            asked_at=text(self.now),
            expires_at=text(self.now + self.chance.uniform(30, 300)),
        )
        self.database.write(ticket)
        for _ in range(self.chance.randint(2, 8)):
            self._start(self._call(ticket.id, job), None, self.chance.uniform(0, 60))

    def _operate(self) -> Steps:
        while True:
            yield self.chance.uniform(0.5, 4.0)
            try:
                states = yield lambda database: [
                    (ticket, database.state_of(ticket)) for ticket in database.tickets.values()
                ]
            except (InDoubt, Away):
                continue
            for ticket, state in states:
                if state is State.PENDING:
                    yield from self._end(lambda database, ticket=ticket: self._decide(database, ticket.id))
                elif state is State.UNKNOWN:
                    self._unknown.add(ticket.id)
                    self._repeat(ticket)
                elif ticket.id in self._unknown:
                    raise Broken(f"{ticket.id} was unknown, and is {state} now")

    def _decide(self, database: Database, ticket_id: str) -> None:
        ticket = database.tickets[ticket_id]
        if database.state_of(ticket) is State.PENDING:
            database.write(decided(ticket, "approve", now=text(self.now), by="operator"))

    def _repeat(self, ticket: Ticket) -> None:
        job = ticket.binding
        if ticket.id not in self._repeated and not self._ran[job]:
            self.happened["unknown, and asked anew"] += 1
            self._ask(job)
        self._repeated.add(ticket.id)

    # -- a node

    def _tick(self, node: Node) -> float:
        return node.ahead + node.fast * self.now

    def _beat(self, node: Node) -> Steps:
        """Renew the lease, while there is one."""
        while True:
            yield 0.5
            lease = node.lease
            if lease is None or not lease.is_due(self._tick(node)):
                continue
            asked_at = self._tick(node)
            try:
                until = yield lambda database, name=lease.node: self._renew(database, name)
            except (InDoubt, Away):
                continue
            if until == LOST:
                self.happened["lease lost"] += 1
                if node.lease is not None and node.lease.node == lease.node:
                    node.lease = None
            elif node.lease is not None and node.lease.node == lease.node:
                node.lease = node.lease.renewed(self._counted(node, asked_at))

    def _counted(self, node: Node, asked_at: float) -> float:
        return asked_at if self.rules.counts_from_asking else self._tick(node)

    def _renew(self, database: Database, name: str) -> str | float:
        held_until = database.leases.get(name)
        if held_until is None:  # its first one: the name is new
            until: float | None = database.now + self.rules.terms.length_s
        else:
            until = self.rules.extended(held_until, database.now, self.rules.terms)
        if until is None:
            return LOST
        database.leases[name] = until
        return until

    def _call(self, ticket_id: str, job: str) -> Steps:
        """Send the call to some node, as a client that may repeat it."""
        node = self.chance.choice(self._nodes)
        self._start(self._serve(node, ticket_id, job), node)
        return
        yield

    def _serve(self, node: Node, ticket_id: str, job: str) -> Steps:
        ask = ask_of(job)
        try:
            ticket = yield lambda database: database.tickets.get(ticket_id)
        except (InDoubt, Away):
            return
        wall = text(self._tick(node) - node.ahead)
        if refuse(ticket, ask, job, wall, ticket_id) is not None:
            if ticket.state is State.PENDING:  # the client comes back later
                self._start(self._call(ticket_id, job), None, self.chance.uniform(1, 10))
            return
        self._count += 1
        name = f"n{self._count}" if node.lease is None else node.lease.node
        redemption = f"r{self._count}"
        if not (yield from self._redeemed(node, ticket_id, ask, name, redemption)):
            return
        if not (yield from self._intend(node, ticket_id, redemption)) or not self._owns(node, name):
            self.happened["given back"] += 1
            yield from self._end(lambda database: self._give_back(database, ticket_id, name, redemption))
            return
        yield self.chance.uniform(0, MOST_ACT_S) if self.chance.random() < 0.3 else 0.001
        self._act(node, ticket_id, job, redemption)
        if not self.rules.intends_first:
            node.intents.add((ticket_id, redemption))
        yield self.chance.expovariate(1 / 5)
        yield from self._end(lambda database: self._finish(database, ticket_id, name, redemption))

    def _redeemed(
        self, node: Node, ticket_id: str, ask: Ask, name: str, redemption: str
    ) -> Generator[Any, Any, bool]:
        """Redeem a ticket under a name; return whether its call may be prepared."""
        asked_at = self._tick(node)
        try:
            answer = yield lambda database: self._redeem(database, ticket_id, ask, name, redemption)
        except Away:
            return False
        except InDoubt:
            self.happened["redemption in doubt"] += 1
            answer = redemption if self.rules.runs_in_doubt else None
        if answer == LOST and node.lease is not None and node.lease.node == name:
            node.lease = None
        if answer == redemption:
            self._confirm(node, name, asked_at)
        return answer == redemption

    def _redeem(self, database: Database, ticket_id: str, ask: Ask, name: str, redemption: str) -> object:
        if self._renew(database, name) == LOST:
            return LOST
        ticket = database.tickets[ticket_id]
        if self.rules.compares:
            if refuse(ticket, ask, ask.tool, text(database.now), ticket_id) is not None:
                return "refused"
            assert State.RUNNING in TRANSITIONS[ticket.state]
        database.write(ticket._replace(state=State.RUNNING, owner=name, started_at=redemption))
        self.happened["redeemed"] += 1
        return redemption

    def _confirm(self, node: Node, name: str, asked_at: float) -> None:
        """Hold the lease that came with a redemption."""
        counted = self._counted(node, asked_at)
        if node.lease is None:
            node.lease = Lease(name, counted, self.rules.terms)
        elif node.lease.node == name:
            node.lease = node.lease.renewed(counted)

    def _intend(self, node: Node, ticket_id: str, redemption: str) -> Generator[float, None, bool]:
        """Write the intent; a disk may be slow, or full."""
        yield self.chance.uniform(0.001, 0.05) if self.chance.random() < 0.85 else self.chance.uniform(0, 20)
        if self.chance.random() < 0.15:
            self.happened["disk full"] += 1
            return False
        if self.rules.intends_first:
            node.intents.add((ticket_id, redemption))
        return True

    def _owns(self, node: Node, name: str) -> bool:
        """Whether the node may start a call that it redeemed under this name, by its own clock."""
        if node.lease is None or (self.rules.checks_owner and node.lease.node != name):
            return False
        may_start = self.rules.may_start(node.lease, self._tick(node))
        self.happened["too late to start"] += not may_start
        return may_start

    def _act(self, node: Node, ticket_id: str, job: str, redemption: str) -> None:
        self.happened["ran"] += 1
        if (ticket_id, redemption) not in node.intents:
            raise Broken(f"{ticket_id} ran without an intent")
        if self.database.state_of(self.database.tickets[ticket_id]) is State.UNKNOWN:
            raise Broken(f"{ticket_id} ran while others may take it for unknown")
        self._ran.update((ticket_id, job))
        if self._ran[ticket_id] > 1 or self._ran[job] > 1:
            raise Broken(f"{ticket_id} ran a second time")

    def _end(self, work: Callable[[Database], object]) -> Generator[Any, Any, None]:
        try:
            yield work
        except (InDoubt, Away):
            self.happened["end not written"] += 1

    def _is_own(self, database: Database, ticket: Ticket, name: str, redemption: str) -> bool:
        """Whether the node still owns the call of a ticket, so that it may write how it ended."""
        if self.rules.keeps and self._renew(database, name) == LOST:
            return False
        is_same = ticket.started_at == redemption or not self.rules.names_redemption
        return ticket.state is State.RUNNING and ticket.owner == name and is_same

    def _finish(self, database: Database, ticket_id: str, name: str, redemption: str) -> None:
        ticket = database.tickets[ticket_id]
        if self._is_own(database, ticket, name, redemption):
            database.write(ticket._replace(state=State.DONE))
            self.happened["done"] += 1

    def _give_back(self, database: Database, ticket_id: str, name: str, redemption: str) -> None:
        ticket = database.tickets[ticket_id]
        if self._is_own(database, ticket, name, redemption):
            database.write(ticket._replace(state=State.APPROVED, owner=None, started_at=None))

    # -- at the end

    def _check_end(self) -> None:
        for ticket in self.database.tickets.values():
            state = self.database.state_of(ticket)
            self.happened[f"ended {state}"] += 1
            if self._ran[ticket.id] and state not in (State.RUNNING, State.DONE, State.UNKNOWN):
                raise Broken(f"{ticket.id} ran, and is {state}")
            if ticket.id in self._unknown and state is not State.UNKNOWN:
                raise Broken(f"{ticket.id} was unknown, and is {state} now")


def ask_of(job: str) -> Ask:
    """The call of a job, whichever node it is sent to."""
    return Ask(job, {}, None, "", "", "ada")
