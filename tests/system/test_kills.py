"""Kills under load: no acknowledged record and no approval is lost, and nothing runs twice.

Each round starts a server, sends it calls faster than it can answer, kills it with SIGKILL after some of the
answers were read, and remembers which calls those answered. The tool's only effect is a line in a file.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from portbook.access.approval_state_and_binding import State
from portbook.clock import SystemClock
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.sqlite_store import Store
from support.counts import count, seed
from support.portbook_process import PORTBOOK, child, run

WORLDS = 2  # one for each core
CALLS = 40
APPROVED = 3  # approvals that a round redeems

TOOLS = """
import os
from pathlib import Path
from portbook import Toolset

toolset = Toolset("ledger")
LEDGER = os.open(Path(__file__).with_name("ledger"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

@toolset.tool(effect="write", inline=True)
def enter(number: str) -> dict[str, str]:
    os.write(LEDGER, number.encode() + b"\\n")
    return {"entered": number}
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[audit]
keep = 100000
[[policy.rules]]
name = "a person"
tools = ["enter"]
where = { "/number" = { pattern = "^asked-" } }
action = "ask"
"""


@dataclass
class World:
    """One folder that servers live and die in, and what they said."""

    folder: Path
    answered: set[str] = field(default_factory=set)
    """The calls whose answers were read."""
    asked: dict[str, str] = field(default_factory=dict)
    """The ticket of each call that needs a person."""
    kills: int = 0


def frame(number: str, approval: str | None = None) -> bytes:
    params: dict[str, Any] = {
        "tool": "mcp.tool:enter",
        "input": {"number": number},
        "context": {"taskId": number},
    }
    if approval is not None:
        params["_meta"] = {"portbook/approval_id": approval}
    message = {"jsonrpc": "2.0", "id": number, "method": "mcp.tool.invoke", "params": params}
    return json.dumps(message).encode() + b"\n"


def one_life(world: World, chance: random.Random, life: int) -> None:
    """Start a server, talk to it, kill it in the middle of its work."""
    with child(
        [*PORTBOOK, "serve", "--stdio"],
        cwd=world.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        _talk_and_kill(process, world, chance, life)


def _talk_and_kill(process: subprocess.Popen[bytes], world: World, chance: random.Random, life: int) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    redeemed = list(world.asked.items())[-APPROVED:]  # those of the life before
    frames = [frame(f"{life}-{at}") for at in range(CALLS)]
    frames += [frame(number, ticket) for number, ticket in redeemed] * 2
    frames += [frame(f"asked-{life}-{at}") for at in range(APPROVED)]
    chance.shuffle(frames)
    process.stdin.write(b"".join(frames))
    process.stdin.flush()
    for _ in range(chance.randrange(1, len(frames))):
        answer = json.loads(process.stdout.readline())
        if "result" in answer:
            world.answered.add(answer["id"])
        elif answer["error"]["data"]["reason"] == "APPROVAL_REQUIRED":
            world.asked[answer["id"]] = answer["error"]["data"]["approval_id"]
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    world.kills += 1


def approve(world: World) -> None:
    """Say yes to all that is waiting, as an operator of another process would."""

    async def say_yes() -> None:
        store = Store(world.folder / "portbook.db")
        approvals = ApprovalStore(store, SystemClock())
        for ticket in approvals.tickets(State.PENDING):
            await approvals.decide(ticket.id, "approve", by="the test")
        approvals.close()
        store.close()

    asyncio.run(say_yes())


def many_lives(folder: Path, number: int) -> World:
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS)
    world, chance = World(folder), random.Random(seed() * WORLDS + number)
    for life in range(count("server kills") // WORLDS):
        one_life(world, chance, life)
        approve(world)
    return world


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[World]:
    folders = [tmp_path_factory.mktemp(f"world{at}") for at in range(WORLDS)]
    with ThreadPoolExecutor(WORLDS) as pool:
        return list(pool.map(many_lives, folders, range(WORLDS)))


def entered(world: World) -> Counter[str]:
    return Counter((world.folder / "ledger").read_text().split())


def stream(world: World, name: str) -> list[dict[str, Any]]:
    folder = world.folder / "runs" / "mcp_server" / name
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        if not path.is_symlink()
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")  # a kill can cut a write in two; what it cut was never acknowledged
    ]


@pytest.mark.covers("002.kills")
@pytest.mark.soak("server kills")
def test_after_many_kills_nothing_acknowledged_is_lost_and_nothing_ran_twice(
    worlds: list[World],
) -> None:
    assert sum(world.kills for world in worlds) == count("server kills")
    for world in worlds:
        ran = entered(world)
        assert max(ran.values()) == 1, "something ran twice"
        assert world.answered <= ran.keys(), "something was acknowledged that did not run"
        assert any(number.startswith("asked-") for number in world.answered), "no approval was ever redeemed"
        done = [record for record in stream(world, "execution") if record["status_code"] == 200]
        kept = {
            record["taskId"] for record in stream(world, "envelope_validation") if record["status"] == "ok"
        }
        assert world.answered <= kept, "an acknowledged record is lost"
        intents = stream(world, "intent")
        # Whatever was acknowledged has a record, and whatever ran at least its intent.
        assert len(world.answered) <= len(done) <= sum(ran.values()) <= len(intents)
        assert {record["request_id"] for record in done} <= {intent["request_id"] for intent in intents}


@pytest.mark.soak("server kills")
def test_the_chain_of_records_is_whole_after_every_kill(worlds: list[World]) -> None:
    for world in worlds:
        verified = run("audit", "verify", cwd=world.folder)
        assert verified.code == 0, verified.out.decode() + verified.err


@pytest.mark.soak("server kills")
def test_no_approval_is_lost_and_a_call_that_was_killed_is_unknown(worlds: list[World]) -> None:
    for world in worlds:
        store = Store(world.folder / "portbook.db")
        tickets = {ticket.id: ticket for ticket in ApprovalStore(store, SystemClock()).tickets(limit=10**6)}
        store.close()
        assert set(world.asked.values()) <= tickets.keys()
        numbers = {ticket: number for number, ticket in world.asked.items()}
        states = Counter(tickets[ticket].state for ticket in numbers)
        assert states.keys() <= {State.APPROVED, State.DONE, State.UNKNOWN}
        ran = entered(world)
        for ticket, number in numbers.items():
            if number in world.answered:
                assert tickets[ticket].state in (State.DONE, State.UNKNOWN)
            if tickets[ticket].state is State.APPROVED:
                assert number not in ran, "something ran whose approval is still good"
