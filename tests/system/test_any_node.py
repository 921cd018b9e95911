"""Processes with one store serve one client: each of its requests may reach any of them.

They are three nodes of a file or of a database, or three workers; and one process alone does the same.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import sdks
from support.nodes import NodeClient, Nodes, nodes_of, one_process, text_of, workers_of
from support.portbook_process import environment
from support.postgres_server import new_schema
from support.round_robin_proxy import round_robin
from support.running_processes import wait_until

# Each kind of store, as settings have it; {} is the address of a database.
STORES = {"sqlite": '[store]\npath = "portbook.db"\n', "postgresql": '[store]\nurl = "{}"\nlease_s = 6\n'}

PROGRESS = "notifications/progress"
UPDATED = "notifications/resources/updated"
LISTS = "notifications/tools/list_changed"


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """The settings of a store of each kind."""
    if request.param == "sqlite":
        yield STORES["sqlite"]
        return
    with new_schema(request.getfixturevalue("postgres_server")) as url:
        yield STORES[request.param].format(url)


@pytest.fixture(scope="module", params=["one process", "workers", *STORES])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three nodes: processes with a store of each kind, workers, or one process for all of them."""
    folder = tmp_path_factory.mktemp("nodes")
    with contextlib.ExitStack() as stack:
        if request.param == "one process":
            started = one_process(folder, 3)
        elif request.param == "workers":
            started = workers_of(folder, 3)
        elif request.param == "sqlite":
            started = nodes_of(folder, 3, STORES["sqlite"])
        else:
            url = stack.enter_context(new_schema(request.getfixturevalue("postgres_server")))
            started = nodes_of(folder, 3, STORES[request.param].format(url))
        yield stack.enter_context(started)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


def began(gate: Path) -> bool:
    return Path(f"{gate}.began").exists()


@pytest.mark.covers("design.nodes.streams")
def test_a_stream_is_resumed_at_a_node_that_did_not_begin_it(nodes: Nodes, gate: Path) -> None:
    client = NodeClient(nodes)
    first = client.call(0, "steps", gate=str(gate))
    first.until(lambda: first.told(PROGRESS))
    first.leave()
    second = client.listen(1, first.last_id)
    second.until(lambda: second.status == 200)
    third = client.listen(2, first.last_id)  # the latest reader is the only one
    second.ended()
    gate.touch()
    answer = third.ended().answer()
    assert text_of(answer) == f"done by {nodes.pid(0)}"
    assert [each["params"]["progress"] for each in third.told(PROGRESS)] == [2]
    assert second.messages == []
    again = client.listen(1, first.last_id).ended()  # after its end, too
    assert again.answer() == answer


@pytest.mark.covers("design.nodes.questions")
@pytest.mark.covers("design.nodes.workers")
@pytest.mark.parametrize("kind", ["ask", "sample"])
def test_a_question_is_answered_at_a_different_node(nodes: Nodes, kind: str) -> None:
    client = NodeClient(nodes)
    reply = client.call(0, kind)
    reply.until(lambda: any("id" in each and "method" in each for each in reply.messages))
    [question] = [each for each in reply.messages if "method" in each and "id" in each]
    results: dict[str, Any] = {
        "ask": {"action": "accept", "content": {"name": "Ada"}},
        "sample": {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"},
    }
    assert client.send(2, {"id": question["id"], "result": results[kind]}).status == 202
    assert text_of(reply.answer()) == {"ask": f"Ada told {nodes.pid(0)}", "sample": "Paris"}[kind]


@pytest.mark.covers("design.nodes.questions-of-others")
def test_an_answer_of_a_different_session_reaches_no_question(nodes: Nodes) -> None:
    client, stranger = NodeClient(nodes), NodeClient(nodes)
    reply = client.call(0, "ask")
    reply.until(lambda: reply.told("elicitation/create"))
    [question] = reply.told("elicitation/create")
    for name, other in (("Eve", stranger), ("Ada", client)):
        answer = {"action": "accept", "content": {"name": name}}
        assert other.send(1, {"id": question["id"], "result": answer}).status == 202
    assert text_of(reply.answer()).startswith("Ada")


@pytest.mark.covers("design.nodes.cancellations")
def test_a_request_is_cancelled_at_a_different_node(nodes: Nodes, gate: Path) -> None:
    client = NodeClient(nodes)
    reply = client.call(1, "steps", gate=str(gate))
    wait_until(lambda: began(gate))
    identifier = 2  # after initialize
    client.send(2, {"method": "notifications/cancelled", "params": {"requestId": identifier}})
    assert not [each for each in reply.ended().messages if "method" not in each]


@pytest.mark.covers("design.nodes.notifications")
def test_a_notification_reaches_the_stream_at_a_different_node(nodes: Nodes) -> None:
    client, unsubscribed = NodeClient(nodes), NodeClient(nodes)
    client.ask(2, "resources/subscribe", {"uri": "node://thing"})
    streams = [client.listen(1), unsubscribed.listen(2)]
    for stream in streams:
        stream.until(lambda stream=stream: stream.events)  # primed
    client.text(0, "touch")
    client.text(0, "switch")
    for stream in streams:
        stream.until(lambda stream=stream: stream.told(LISTS))
    assert [len(stream.told(UPDATED)) for stream in streams] == [1, 0]
    # Resumed elsewhere, it goes on where it was; what came in between is not lost.
    streams[0].leave()
    client.text(1, "touch")
    resumed = client.listen(0, streams[0].last_id)
    resumed.until(lambda: resumed.told(UPDATED))
    client.ask(1, "resources/unsubscribe", {"uri": "node://thing"})
    client.text(1, "touch")
    client.text(2, "switch")
    resumed.until(lambda: resumed.told(LISTS))
    assert len(resumed.told(UPDATED)) == 1
    # A newer reader takes the place of the one before, wherever that is.
    newer = client.listen(2)
    resumed.ended()
    client.text(1, "switch")
    newer.until(lambda: newer.told(LISTS))
    for each in (newer, streams[1]):
        each.leave()


@pytest.mark.covers("design.nodes.log-level")
def test_the_log_level_that_one_node_was_told_holds_at_the_others(nodes: Nodes) -> None:
    client = NodeClient(nodes)
    assert [each["method"] for each in client.call(1, "log").ended().messages[:-1]]
    client.ask(0, "logging/setLevel", {"level": "error"})

    def is_silent(node: int) -> bool:
        return not client.call(node, "log").ended().told("notifications/message")

    for node in range(3):
        wait_until(lambda node=node: is_silent(node))


@pytest.mark.covers("design.nodes.subscriptions")
def test_a_subscription_stream_hears_what_happens_at_a_different_node(nodes: Nodes, gate: Path) -> None:
    client = NodeClient(nodes, "2026-07-28")
    task = client.task(2, "job", gate=str(gate))
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["node://thing"], "taskIds": [task]}
    stream = client.start(0, "subscriptions/listen", {"notifications": wanted})
    stream.until(lambda: stream.told("notifications/subscriptions/acknowledged"))
    [agreed] = stream.told("notifications/subscriptions/acknowledged")
    assert agreed["params"]["notifications"] == wanted
    client.text(1, "touch")
    client.text(2, "switch")
    gate.touch()
    stream.until(lambda: stream.told(UPDATED) and stream.told(LISTS))
    stream.until(lambda: stream.told("notifications/tasks")[-1]["params"]["status"] == "completed")
    stream.leave()


@pytest.mark.covers("design.nodes.rounds")
def test_a_round_is_continued_at_a_different_node(nodes: Nodes) -> None:
    client = NodeClient(nodes, "2026-07-28")
    params: dict[str, Any] = {"name": "ask", "arguments": {}}
    first = client.ask(0, "tools/call", params)["result"]
    assert first["resultType"] == "input_required"
    [name] = first["inputRequests"]
    answer = {"action": "accept", "content": {"name": "Ada"}}
    more = {"inputResponses": {name: answer}, "requestState": first["requestState"]}
    assert text_of(client.ask(1, "tools/call", {**params, **more})) == f"Ada told {nodes.pid(1)}"


@pytest.mark.covers("design.nodes.tasks")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_task_is_known_at_every_node(nodes: Nodes, gate: Path, revision: str) -> None:
    client = NodeClient(nodes, revision)
    task = {"taskId": client.task(0, "job", gate=str(gate))}
    given_up = {"taskId": client.task(1, "job", gate=str(gate.with_name("never")))}

    def status(node: int, task: dict[str, str]) -> str:
        return client.ask(node, "tasks/get", task)["result"]["status"]

    assert [status(node, task) for node in range(3)] == ["working"] * 3
    if revision < "2026":
        listed = client.ask(2, "tasks/list")["result"]["tasks"]
        assert {task["taskId"], given_up["taskId"]} <= {each["taskId"] for each in listed}
    assert "result" in client.ask(2, "tasks/cancel", given_up)
    for node in range(3):
        wait_until(lambda node=node: status(node, given_up) == "cancelled")
    gate.touch()
    for node in range(3):
        wait_until(lambda node=node: status(node, task) == "completed")
    if revision < "2026":
        assert text_of(client.ask(2, "tasks/result", task)) == f"done by {nodes.pid(0)}"
    else:
        told = client.ask(2, "tasks/get", task)
        assert told["result"]["result"]["content"][0]["text"] == f"done by {nodes.pid(0)}"
    assert _reason(client.ask(1, "tasks/get", {"taskId": "0" * 32})) == "UNKNOWN_TASK"


@pytest.mark.covers("design.nodes.asking-tasks")
def test_a_task_asks_through_whichever_node_its_client_waits_at(nodes: Nodes) -> None:
    client = NodeClient(nodes)
    task = {"taskId": client.task(0, "asking_job")}
    waiting = client.start(1, "tasks/result", task)
    waiting.until(lambda: waiting.told("elicitation/create"))
    [question] = waiting.told("elicitation/create")
    answer = {"action": "accept", "content": {"name": "Ada"}}
    assert client.send(2, {"id": question["id"], "result": answer}).status == 202
    assert text_of(waiting.answer()) == f"Ada told {nodes.pid(0)}"
    assert len(waiting.told("elicitation/create")) == 1


@pytest.mark.covers("design.nodes.answered-tasks")
def test_a_task_of_the_extension_is_answered_at_a_different_node(nodes: Nodes) -> None:
    client = NodeClient(nodes, "2026-07-28")
    task = {"taskId": client.task(0, "asking_job")}

    def state(node: int) -> Any:
        return client.ask(node, "tasks/get", task)["result"]

    wait_until(lambda: state(1)["status"] == "input_required")
    [name] = state(1)["inputRequests"]
    answers = {name: {"action": "accept", "content": {"name": "Ada"}}}
    assert "result" in client.ask(2, "tasks/update", {**task, "inputResponses": answers})
    wait_until(lambda: state(1)["status"] == "completed")
    assert state(2)["result"]["content"][0]["text"] == f"Ada told {nodes.pid(0)}"


@pytest.mark.covers("design.nodes.sessions")
def test_a_session_that_ended_at_one_node_has_ended_at_all(nodes: Nodes, gate: Path) -> None:
    client = NodeClient(nodes)
    stream = client.listen(1)
    running = client.call(2, "steps", gate=str(gate))
    wait_until(lambda: began(gate) and stream.events)
    assert client.end(0).status == 204
    stream.ended()
    running.ended()
    assert not [each for each in running.messages if "method" not in each]

    def is_refused(node: int) -> bool:
        return client.start(node, "ping").ended().status == 404

    for node in range(3):
        wait_until(lambda node=node: is_refused(node))


@pytest.mark.covers("design.nodes.clients")
@pytest.mark.timeout(300)
def test_an_official_client_completes_a_session_over_all_nodes(nodes: Nodes) -> None:
    try:
        python = sdks.python_sdk()
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    with round_robin([server.url for server in nodes.servers]) as (url, went):
        done = subprocess.run(
            [str(python), str(sdks.HERE / "python_any_node_client.py")],
            input=json.dumps({"url": f"{url}/mcp", "modes": ["legacy", "auto"]}),
            capture_output=True,
            text=True,
            env=environment(),
            timeout=240,
        )
    assert done.returncode == 0, done.stderr
    assert set(went) == {0, 1, 2}
    for mode, seen in json.loads(done.stdout).items():
        assert seen["version"] == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
        answerers, pids = set(seen["answerers"]), {str(nodes.pid(node)) for node in range(3)}
        assert answerers
        # Which worker takes a connection is left to chance.
        assert answerers <= pids if len({server.url for server in nodes.servers}) == 1 else answerers == pids
        assert seen["elicitation"] == ["Ada"] * 3
        assert seen["sampling"] == ["Paris"] * 3
        assert seen["progress"] == [1, 2, 3]
        if mode == "legacy":
            assert seen["resumed"] == ["still there"] * 3
            assert seen["updates"] == ["node://thing"] * 3


@pytest.mark.covers("design.nodes.plain_calls")
def test_a_plain_call_writes_nothing_to_the_store(nodes: Nodes) -> None:
    client = NodeClient(nodes)
    for node in range(3):
        client.text(node, "pid")
    files = [path for path in sorted(nodes.folder.iterdir()) if path.name.startswith("portbook.db")]
    if not files:
        pytest.skip("the store is in no file")

    def written() -> list[int]:
        return [path.stat().st_mtime_ns for path in files if not path.name.endswith("-shm")]

    # Others may write meanwhile, such as a checkpoint of the records: not for each call.
    for _ in range(20):
        before = written()
        for node in range(3):
            client.text(node, "pid")
        if written() == before:
            return
    pytest.fail("each call wrote to the store")


def _reason(answer: Any) -> str:
    return answer["error"]["data"]["reason"]


@pytest.mark.covers("design.nodes.unknown")
def test_what_a_killed_node_ran_is_unknown_at_the_others(
    store: str, gate: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with contextlib.ExitStack() as stack:
        pair = stack.enter_context(nodes_of(tmp_path_factory.mktemp("pair"), 2, store))
        client, later = NodeClient(pair), NodeClient(pair, "2026-07-28")
        asking, running = client.call(0, "ask"), client.call(0, "steps", gate=str(gate))
        asking.until(lambda: asking.told("elicitation/create"))
        running.until(lambda: running.told(PROGRESS))
        [question] = asking.told("elicitation/create")
        tasks = [client.task(0, "job", gate=str(gate)), later.task(0, "job", gate=str(gate))]
        waiting = client.listen(1, running.last_id)
        result = client.start(1, "tasks/result", {"taskId": tasks[0]})
        pair.servers[0].process.send_signal(signal.SIGKILL)
        pair.servers[0].process.wait(30)
        # A stream that is resumed ends with it, whether it was resumed before or after.
        assert _reason(waiting.ended().answer()) == "OUTCOME_UNKNOWN"
        for last in (running.last_id, asking.last_id):
            assert _reason(client.listen(1, last).ended().answer()) == "OUTCOME_UNKNOWN"
        assert _reason(result.answer()) == "OUTCOME_UNKNOWN"
        for each, task in ((client, tasks[0]), (later, tasks[1])):
            assert each.ask(1, "tasks/get", {"taskId": task})["result"]["status"] == "failed"
        told = later.ask(1, "tasks/get", {"taskId": tasks[1]})["result"]
        assert _reason(told) == "OUTCOME_UNKNOWN"
        # An answer that comes too late answers nothing, and the session goes on.
        answer = {"action": "accept", "content": {"name": "Ada"}}
        assert client.send(1, {"id": question["id"], "result": answer}).status == 202
        gate.touch()
        assert client.text(1, "pid") == str(pair.pid(1))


@pytest.mark.covers("design.nodes.stopped")
def test_a_node_that_stops_sends_its_clients_to_the_others(
    store: str, gate: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with nodes_of(tmp_path_factory.mktemp("stopped"), 2, store) as pair:
        client = NodeClient(pair)
        client.ask(1, "resources/subscribe", {"uri": "node://thing"})
        stream = client.listen(0)
        stream.until(lambda: stream.events)
        running, left = client.call(0, "steps", gate=str(gate)), client.call(0, "steps", gate=str(gate))
        for each in (running, left):
            each.until(lambda each=each: each.told(PROGRESS))
        left.leave()
        pair.servers[0].process.terminate()
        stream.ended()  # at once: its client can resume elsewhere
        gate.touch()
        assert text_of(running.answer()) == f"done by {pair.pid(0)}"
        pair.servers[0].process.wait(60)
        answer = client.listen(1, left.last_id).ended().answer()
        assert "result" in answer or _reason(answer) == "OUTCOME_UNKNOWN"
        resumed = client.listen(1, stream.last_id)
        resumed.until(lambda: resumed.events or resumed.status == 200)
        client.text(1, "touch")
        resumed.until(lambda: resumed.told(UPDATED))
        resumed.leave()
