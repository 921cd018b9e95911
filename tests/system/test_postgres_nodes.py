"""Several servers on one PostgreSQL: approvals run once wherever they are redeemed, and nothing hangs."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.counts import count, seed
from support.portbook_process import HttpServer, run
from support.postgres_nodes import (
    OPERATOR,
    Fleet,
    LosingProxy,
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
    written_records,
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


# A machine whose clock is a day ahead.
DAY_AHEAD = """
import time as machine
right = machine.time_ns
machine.time_ns = lambda: right() + 86_400 * 10**9
"""


@pytest.mark.covers("021.store.times-of-approvals")
def test_all_times_of_an_approval_are_those_of_the_database(tmp_path: Path, postgres_database: str) -> None:
    folder = make_node(tmp_path, "ahead", postgres_database)
    with (folder / "tools.py").open("a") as tools:
        tools.write(DAY_AHEAD)
    with node(folder) as server:

        def operator(path: str) -> Any:
            return server.request(path, authorization=f"Bearer {OPERATOR}").json

        approval = asked(server, "enter", "x")
        [waiting] = operator("/operator/waiting")["waiting"]
        assert -5 < waiting["age_s"] < 600
        assert 0 < waiting["expires_in_s"] <= 3605
        assert decide(server, approval).status == 200
        assert reason(call(server, "enter", "x", approval)) == "passed"
        eventually(lambda: state(server, approval) == "done")
        ticket = operator(f"/approvals/{approval}")
        assert ticket["asked_at"] <= ticket["started_at"] <= ticket["ended_at"] < ticket["expires_at"]
    [record] = written_records([folder], "intent", "enter")
    assert record["timestamp"] > ticket["expires_at"], "the clock was not ahead: the test shows nothing"


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


@pytest.mark.covers("021.store.unknown-commit")
@pytest.mark.parametrize("is_back", [True, False], ids=["back at once", "away"])
def test_a_redemption_whose_commit_nobody_acknowledged_is_asked_for_or_unknown(
    tmp_path: Path, postgres_database: str, *, is_back: bool
) -> None:
    proxy = LosingProxy(postgres_database)
    direct = make_node(tmp_path, "direct", postgres_database, 2)
    losing = make_node(tmp_path, "losing", proxy.url, 30 if is_back else 2)
    with node(losing) as one, node(direct) as other, ThreadPoolExecutor(1) as pool:
        try:
            approval = asked(one, "enter", "once")
            decide(other, approval)
            calling = pool.submit(call, one, "enter", "once", approval)
            assert proxy.has_lost.wait(60)
            if is_back:  # the database tells that it was committed
                proxy.go_on()
                assert reason(calling.result()) == "passed"
                eventually(lambda: state(other, approval) == "done")
            else:  # nobody can tell: the call does not run, now or later
                assert reason(calling.result()) == "STORE_UNUSABLE"
                eventually(lambda: state(other, approval) == "unknown")
                proxy.go_on()
                eventually(lambda: one.request("/health").status == 200)
            for server in (one, other):
                assert reason(call(server, "enter", "once", approval)) == "APPROVAL_REFUSED"
            assert ledger(tmp_path) == ["once"] * is_back
        finally:
            proxy.close()


@pytest.mark.covers("021.store.one-version-ahead")
def test_nodes_go_on_with_tables_one_version_ahead_and_no_more(
    tmp_path: Path, postgres_database: str
) -> None:
    def migrate() -> None:
        with psycopg.connect(postgres_database, autocommit=True) as newer:
            newer.execute("UPDATE portbook_tables SET version = version + 1")

    with nodes(tmp_path, postgres_database, 1) as [old]:
        before = asked(old, "enter", "before")
        with psycopg.connect(postgres_database, autocommit=True) as newer:
            newer.execute("ALTER TABLE ticket ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'")
        migrate()
        with node(make_node(tmp_path, "another", postgres_database)) as another:  # of the old version, too
            decide(another, before)
            assert reason(call(old, "enter", "before", before)) == "passed"
            after = asked(old, "enter", "after")
            decide(old, after)
            assert reason(call(another, "enter", "after", after)) == "passed"
        migrate()
        refused = run("store", "check", cwd=tmp_path / "another")
        assert refused.code != 0
        assert "made by a newer version of Portbook" in refused.err
    with node(tmp_path / "another") as late:
        assert reason(call(late, "enter", "never")) == "STORE_UNUSABLE"
        assert reason(call(late, "look", "x")) == "passed"
    assert ledger(tmp_path) == ["before", "after"]


@pytest.mark.covers("021.store.nothing-waits-for-ever")
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
            # It takes everything and says nothing: what needs it is given up, and all else goes on.
            assert reason(call(one, "enter", "waiting", waiting)) == "STORE_UNUSABLE"
            assert reason(call(one, "look", "x")) == "passed"
            assert one.request("/health").status == 503
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
    watching = make_node(tmp_path, "watcher", postgres_database, 2)
    folders = [make_node(tmp_path, f"node-{at}", postgres_database, 2) for at in range(3)]
    passed: set[str] = set()
    told: Counter[str] = Counter()
    approvals: dict[str, str] = {}
    with node(watching) as watcher, ThreadPoolExecutor(9) as pool, Fleet(folders) as fleet:
        for kill in range(count("node kills")):
            serving = fleet.serving()
            asking = {f"k{kill}-{at}": pool.submit(_approved, watcher, f"k{kill}-{at}") for at in range(3)}
            approvals |= {number: each.result() for number, each in asking.items()}
            # Each approval is redeemed twice at once, and there is a write that needs none.
            tries = [(number, approvals[number]) for number in asking for _ in range(2)]
            tries += [(f"k{kill}-w{at}", None) for at in range(3)]
            answers = [
                (number, pool.submit(_answer, chance.choice([*serving.values()]), number, approval))
                for number, approval in tries
            ]
            _await_kill(chance, kill, [each for number, each in answers if number in approvals])
            fleet.kill(chance.choice([*serving]))
            passed |= {number for number, each in answers if each.result() == "passed"}
            told.update(each.result() for _, each in answers)
        for approval in approvals.values():
            eventually(lambda one=approval: state(watcher, one) != "running")
        states = {number: state(watcher, approval) for number, approval in approvals.items()}
    assert_each_once(tmp_path, passed, states)
    assert told["killed"] or "unknown" in states.values(), "no kill met a call: the test shows nothing"
    # Nothing ran unaudited, and whatever has no outcome on record is told as unknown.
    intents, outcomes = (
        written_records(folders, stream, "enter", "jot") for stream in ("intent", "execution")
    )
    ran = {record["arguments"]["number"] for record in outcomes if record["status_code"] == 200}
    intended = {(record["arguments"]["number"], record["approval_id"]) for record in intents}
    assert passed <= ran <= set(ledger(tmp_path))
    assert {(number, approvals.get(number)) for number in ledger(tmp_path)} <= intended
    for folder in folders:
        verified = run("audit", "verify", "--json", cwd=folder)
        assert verified.code == 0, verified.out
        ended = {record["request_id"] for record in written_records([folder], "execution", "enter", "jot")}
        doubts = [
            each
            for each in written_records([folder], "intent", "enter", "jot")
            if each["request_id"] not in ended
        ]
        assert len(verified.answers[0]["unknown"]) == min(len(doubts), 100)


def assert_each_once(folder: Path, passed: set[str], states: dict[str, str]) -> None:
    """Check that nothing ran twice, that what was acknowledged ran, and that a doubt is unknown."""
    entered = Counter(ledger(folder))
    assert all(times == 1 for times in entered.values()), entered
    assert passed & states.keys(), "no approved call came to its end: the test shows nothing"
    assert passed <= entered.keys()
    for number, known in states.items():
        if known in ("done", "failed"):
            assert entered[number] == 1
        elif known == "approved":  # never redeemed
            assert entered[number] == 0
        else:
            assert known == "unknown"


@pytest.mark.soak("database kills")
@pytest.mark.covers("021.store.database-kills")
def test_kills_of_the_database_with_approvals_in_flight_lose_and_double_nothing(
    tmp_path: Path, killable: PostgresServer
) -> None:
    chance = random.Random(seed())
    passed: set[str] = set()
    told: Counter[str] = Counter()
    approvals: dict[str, str] = {}
    with nodes(tmp_path, killable.url, 3) as servers, ThreadPoolExecutor(8) as pool:
        for kill in range(count("database kills")):
            for server in servers:
                eventually(lambda each=server: each.request("/health").status == 200)
            numbers = [f"k{kill}-{at}" for at in range(4)]
            approvals |= {number: _approved(chance.choice(servers), number) for number in numbers}
            answers = [
                (number, pool.submit(_answer, chance.choice(servers), number, approvals[number]))
                for number in numbers
                for _ in range(2)
            ]
            _await_kill(chance, kill, [each for _, each in answers])
            killable.kill()
            killable.start()
            passed |= {number for number, each in answers if each.result() == "passed"}
            told.update(each.result() for _, each in answers)
    # What could not be written of a call's end is known once its node has ended.
    with node(tmp_path / "node-0") as server:
        states: dict[str, str] = {}
        for number, approval in approvals.items():
            eventually(lambda one=approval: state(server, one) != "running")
            states[number] = state(server, approval)
    assert_each_once(tmp_path, passed, states)
    assert told["STORE_UNUSABLE"] or "unknown" in states.values(), "no kill met a call: it shows nothing"


def _await_kill(chance: random.Random, kill: int, answers: list[Future[str]]) -> None:
    """Wait until it is time for a kill: at any moment, and at first until a call has passed."""
    if kill:
        time.sleep(chance.random() * 0.03)
    else:
        eventually(lambda: any(each.done() and each.result() == "passed" for each in answers))


def _approved(server: HttpServer, number: str) -> str:
    """The id of an approval for a call, which a person has given."""
    approval = asked(server, "enter", number)
    assert decide(server, approval).status == 200
    return approval


def _answer(server: HttpServer, number: str, approval: str | None) -> str:
    try:
        return reason(call(server, "jot" if approval is None else "enter", number, approval))
    except (OSError, ValueError, HTTPException):  # killed meanwhile
        return "killed"
