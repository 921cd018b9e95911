"""Several servers on one PostgreSQL: approvals run once wherever they are redeemed, and nothing hangs."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from support.counts import count, seed
from support.portbook_process import HttpServer, run
from support.postgres_nodes import (
    StallingProxy,
    asked,
    call,
    decide,
    eventually,
    ledger,
    make_node,
    node,
    nodes,
    reason,
    state,
)
from support.postgres_server import PostgresServer, new_database, own_server

REDEMPTIONS = 64

Nodes = tuple[Path, list[HttpServer]]


@pytest.fixture(scope="module")
def three_nodes(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("nodes")
    with new_database(postgres_server) as url, nodes(folder, url, 3) as servers:
        yield folder, servers


@pytest.mark.soak("shared redemptions")
@pytest.mark.covers("021.store.redeemed-once")
def test_of_many_redemptions_on_three_nodes_one_runs(three_nodes: Nodes) -> None:
    tmp_path, servers = three_nodes
    with ThreadPoolExecutor(REDEMPTIONS) as pool:
        for at in range(count("shared redemptions")):
            number = f"n{at}"
            first, second, third = random.Random(f"{seed()}-{at}").sample(servers, 3)
            approval = asked(first, "enter", number)
            assert asked(second, "enter", number) == approval  # one ticket, wherever it is asked for
            assert decide(third, approval).status == 200
            tried = [servers[n % 3] for n in range(REDEMPTIONS)]
            answers = Counter(
                reason(each)
                for each in pool.map(partial(call, tool="enter", number=number, approval=approval), tried)
            )
            assert answers["passed"] == 1
            # A busy machine may keep one waiting for too long.
            assert answers.keys() <= {"passed", "APPROVAL_REFUSED", "STORE_UNUSABLE"}
            assert ledger(tmp_path).count(number) == 1
            assert {state(each, approval) for each in servers} == {"done"}


@pytest.mark.covers("021.store.revoked-within-a-second")
def test_a_revoked_key_is_refused_on_every_node_within_a_second(three_nodes: Nodes) -> None:
    folder, servers = three_nodes[0] / "node-0", three_nodes[1]
    made = run("keys", "create", "ada", "--json", cwd=folder)
    key = json.loads(made.out)["key"]
    for server in servers:
        eventually(
            lambda one=server: reason(call(one, "look", "k", authorization=f"Bearer {key}")) == "passed"
        )
    assert run("keys", "revoke", "ada", cwd=folder).code == 0
    time.sleep(1)  # what is promised
    for server in servers:
        answer = call(server, "look", "k", authorization=f"Bearer {key}")
        assert reason(answer) in ("UNAUTHORIZED", "STORE_UNUSABLE")
        eventually(
            lambda one=server: reason(call(one, "look", "k", authorization=f"Bearer {key}")) == "UNAUTHORIZED"
        )


@pytest.fixture
def killable() -> Iterator[PostgresServer]:
    with own_server() as server:
        yield server


@pytest.mark.covers("021.store.away")
def test_a_database_that_is_away_stops_only_what_needs_it_and_comes_back_by_itself(
    tmp_path: Path, killable: PostgresServer
) -> None:
    with nodes(tmp_path, killable.url, 2) as servers:
        one, other = servers
        approval = asked(one, "enter", "before")
        decide(other, approval)
        killable.kill()
        for server in servers:
            assert reason(call(server, "look", "x")) == "passed"
            refused = call(server, "enter", "before", approval)
            assert reason(refused) == "STORE_UNUSABLE"
            assert refused.json["error"]["data"]["retryable"]
            health = server.request("/health")
            assert health.status == 503
            assert "cannot be reached" in health.body.decode()
            assert "password" not in health.body.decode()
            assert server.request("/readyz").status == 200  # else a load balancer would leave out every node
        killable.start()
        for server in servers:
            eventually(lambda each=server: each.request("/health").status == 200)
        assert reason(call(other, "enter", "before", approval)) == "passed"
        assert reason(call(one, "enter", "before", approval)) == "APPROVAL_REFUSED"
        assert ledger(tmp_path) == ["before"]


@pytest.mark.covers("021.store.lease-lost")
def test_a_node_whose_connection_hangs_loses_its_leases_and_runs_nothing_on_them(
    tmp_path: Path, postgres_database: str
) -> None:
    proxy = StallingProxy(postgres_database)
    direct = make_node(tmp_path, "direct", postgres_database, 2)
    hanging = make_node(tmp_path, "hanging", proxy.url, 2)
    with node(hanging) as one, node(direct) as other, ThreadPoolExecutor(2) as pool:
        try:
            held, waiting = asked(one, "hold", "held"), asked(one, "enter", "waiting")
            decide(other, held)
            decide(other, waiting)
            running = pool.submit(call, one, "hold", "held", held)
            eventually(lambda: ledger(tmp_path) == ["held"])
            assert state(other, held) == "running"
            proxy.stall()
            eventually(lambda: state(other, held) == "unknown")
            assert reason(call(one, "enter", "waiting", waiting)) == "STORE_UNUSABLE"
            assert reason(call(other, "hold", "held", held)) == "APPROVAL_REFUSED"
            (tmp_path / "go on").touch()
            assert reason(running.result()) == "passed"  # its effects were real: its caller is told of them
            proxy.go_on()
            eventually(lambda: one.request("/health").status == 200)
            assert state(one, held) == state(other, held) == "unknown"  # for good
            # What the hanging connection redeemed or not is known again, and ran at most once.
            eventually(
                lambda: reason(call(one, "enter", "waiting", waiting)) in ("passed", "APPROVAL_REFUSED")
            )
            assert ledger(tmp_path).count("held") == 1
            assert ledger(tmp_path).count("waiting") <= 1
        finally:
            proxy.close()


@pytest.mark.soak("node kills")
@pytest.mark.covers("021.store.node-kills")
def test_kills_of_nodes_with_approvals_in_flight_lose_and_double_nothing(
    tmp_path: Path, postgres_database: str
) -> None:
    chance = random.Random(seed())
    watcher_folder = make_node(tmp_path, "watcher", postgres_database, 2)
    folders = [make_node(tmp_path, f"node-{at}", postgres_database, 2) for at in range(2)]
    passed: set[str] = set()
    approvals: dict[str, str] = {}
    with node(watcher_folder) as watcher, ThreadPoolExecutor(8) as pool, ExitStack() as stack:
        servers = [stack.enter_context(node(folder)) for folder in folders]
        for kill in range(count("node kills")):
            numbers = [f"k{kill}-{at}" for at in range(4)]
            for number in numbers:
                approvals[number] = asked(watcher, "enter", number)
                decide(watcher, approvals[number])
            tries = [(chance.choice(servers), number) for number in numbers for _ in range(2)]
            victim = chance.randrange(2)
            answers = [pool.submit(_answer, server, number, approvals[number]) for server, number in tries]
            time.sleep(chance.random() * 0.05)
            servers[victim].process.send_signal(signal.SIGKILL)
            servers[victim].process.wait()
            passed |= {
                number for each, (_, number) in zip(answers, tries, strict=True) if each.result() == "passed"
            }
            servers[victim] = stack.enter_context(node(folders[victim]))
        entered = Counter(ledger(tmp_path))
        assert all(times == 1 for times in entered.values()), entered
        assert passed <= entered.keys()
        for number, approval in approvals.items():
            eventually(lambda one=approval: state(watcher, one) != "running")
            known = state(watcher, approval)
            if known in ("done", "failed"):
                assert entered[number] == 1
            elif known == "approved":  # never redeemed
                assert entered[number] == 0
            else:
                assert known == "unknown"


def _answer(server: object, number: str, approval: str) -> str:
    try:
        return reason(call(server, "enter", number, approval))  # type: ignore[arg-type]
    except (OSError, ValueError):  # killed meanwhile
        return "killed"
