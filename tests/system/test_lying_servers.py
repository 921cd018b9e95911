"""Servers whose answers are wrong: a call fails with the place of the mistake, and nothing is claimed of it.

Each answer is read by the rules of its server's own revision.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import forked_process
from support.in_process_connection import META
from support.mcp_http_peer import HttpPeer
from support.mcp_peer import CAPABILITIES, Peer, peer_of, table
from support.portbook_process import PORTBOOK, TESTS, environment, http_server
from support.running_processes import wait_until

OLD, NEW = "2025-11-25", "2026-07-28"
SECRET = "s3cr3t-of-ours-42"
TASKS = {META + "clientCapabilities": {**CAPABILITIES, "extensions": {"io.modelcontextprotocol/tasks": {}}}}
CREATED = {
    "resultType": "task",
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttlMs": None,
    "pollIntervalMs": 20,
}


def obedient(revision: str, *lines: str) -> str:
    command = json.dumps([sys.executable, str(TESTS / "fixtures" / "obedient_server.py"), revision])
    return table("box", f"command = {command}", 'env = { SECRET = { env = "OURS" } }', *lines)


def said(peer: Peer, **arguments: Any) -> Any:
    """What a client is told of a call that is answered so."""
    return peer.call("box__say", arguments)


def records(folder: Path) -> str:
    return "".join(path.read_text() for path in (folder / "log").rglob("*.jsonl"))


@pytest.mark.parametrize("server", [OLD, NEW])
@pytest.mark.parametrize("client", [OLD, NEW])
def test_what_a_server_says_that_the_client_lacks_is_said_in_our_words(
    tmp_path: Path, server: str, client: str
) -> None:
    required = {"sampling": {"$SECRET": {}}, "$SECRET": "obey $SECRET"}
    error = {"code": -32021, "message": "no $SECRET", "data": {"requiredCapabilities": required}}
    with peer_of(tmp_path, obedient(server), client, env=environment(OURS=SECRET)) as peer:
        told = json.dumps(said(peer, answer={"error": error}))
        assert SECRET not in told
        assert "obey" not in told
        is_believed = server == NEW
        assert ('"requiredCapabilities": {"sampling": {}}' in told) == is_believed
        assert ("UPSTREAM_ERROR" in told) != is_believed
    assert SECRET not in records(tmp_path)


@pytest.mark.parametrize("server", [OLD, NEW])
def test_a_result_type_of_another_revision_is_a_bad_result(tmp_path: Path, server: str) -> None:
    with peer_of(tmp_path, obedient(server), env=environment(OURS=SECRET)) as peer:
        asks = {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}}
        for result in (CREATED, asks) if server == OLD else ({"task": CREATED},):
            assert "BAD_RESULT" in json.dumps(said(peer, answer={"result": result}))


def test_a_call_that_became_a_task_is_not_said_to_be_unsent(tmp_path: Path) -> None:
    with peer_of(tmp_path, obedient(NEW), env=environment(OURS=SECRET)) as peer:
        told = json.dumps(said(peer, answer={"result": CREATED}, ends=True))
        assert "UPSTREAM_ERROR" in told
        assert "Nothing was sent" not in told


ENDED = {**CREATED, "status": "completed"}
WRONG_TASKS: dict[str, tuple[dict[str, Any], str]] = {
    "content is a number": ({**ENDED, "result": {"content": 5}}, "/content"),
    "content is texts": ({**ENDED, "result": {"content": ["x"]}}, "/content/0"),
    "an error without content": ({**ENDED, "result": {"content": 5, "isError": True}}, "/content"),
    "a result that asks": ({**ENDED, "result": {"resultType": "input_required"}}, "/result/resultType"),
    "questions in a list": (
        {**CREATED, "status": "input_required", "inputRequests": ["x"]},
        "/inputRequests",
    ),
    "a question that is none": (
        {**CREATED, "status": "input_required", "inputRequests": {"q": 5}},
        "/inputRequests",
    ),
    "a status that is a number": ({**CREATED, "status": 5}, "/status"),
    "a status that nobody knows": ({**CREATED, "status": "resting"}, "/status"),
    "no result": ({**ENDED}, "/result"),
    "an error in a list": ({**CREATED, "status": "failed", "error": {"code": 1, "message": ["x"]}}, "/error"),
}


@pytest.mark.parametrize("wrong", WRONG_TASKS)
@pytest.mark.parametrize("validation", ["enforce", "warn"])
def test_the_state_of_a_task_is_checked_like_any_answer(tmp_path: Path, wrong: str, validation: str) -> None:
    state, place = WRONG_TASKS[wrong]
    settings = obedient(NEW, f'validation = "{validation}"')
    with peer_of(tmp_path, settings, NEW, env=environment(OURS=SECRET)) as peer:
        told = json.dumps(said(peer, answer={"result": CREATED}, states=[state]))
        assert "BAD_RESULT" in told
        assert "still here" in json.dumps(said(peer, answer={"result": _text("still here")}))
    assert validation == "warn" or place in records(tmp_path)


def test_the_content_of_a_lenient_server_is_content_all_the_same(tmp_path: Path) -> None:
    settings = obedient(OLD, 'validation = "warn"')
    with peer_of(tmp_path, settings, env=environment(OURS=SECRET)) as peer:
        for result in ({"content": 5}, {"content": ["x"]}, {"content": 5, "isError": True}):
            assert "BAD_RESULT" in json.dumps(said(peer, answer={"result": result}))


def test_an_unreadable_answer_fails_its_call_while_others_are_under_way(tmp_path: Path) -> None:
    twice = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"content":[]}}'
    with peer_of(tmp_path, obedient(OLD), env=environment(OURS=SECRET)) as peer:
        unanswered = peer.start("tools/call", {"name": "box__say", "arguments": {}})
        assert "BAD_RESULT" in json.dumps(said(peer, lines=[twice]))
        peer.write({"method": "notifications/cancelled", "params": {"requestId": unanswered}})


def test_no_secret_of_seventy_reaches_a_client(tmp_path: Path) -> None:
    given = ", ".join(f'S{at} = {{ env = "S{at}" }}' for at in range(70))
    command = json.dumps([sys.executable, str(TESTS / "fixtures" / "obedient_server.py"), OLD])
    settings = table("box", f"command = {command}", f"env = {{ {given} }}")
    values = {f"S{at}": f"sekret-value-{at:02}-of-ours" for at in range(70)}
    with peer_of(tmp_path, settings, env=environment(**values)) as peer:
        for at in (0, 3, 69):
            told = said(peer, answer={"result": _text(f"it is {values[f'S{at}']}")})
            assert values[f"S{at}"] not in json.dumps(told)


def test_the_last_words_of_a_server_have_no_secret_for_any_operator(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(
        '[mcp.box]\ncommand = ["sh", "-c", "echo died with $SECRET >&2; exit 1"]\n'
        'env = { SECRET = { env = "OURS" } }\nstart = "eager"\n'
    )
    done = forked_process.run(
        [*PORTBOOK, "pin"], cwd=tmp_path, env=environment(OURS=SECRET), capture_output=True, timeout=60
    )
    said = done.stdout + done.stderr
    assert b"died with" in said
    assert SECRET.encode() not in said
    with peer_of(tmp_path, (tmp_path / "portbook.toml").read_text(), env=environment(OURS=SECRET)) as peer:
        peer.names()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"died with" in kept
    assert SECRET.encode() not in kept


def test_a_tool_that_one_sessions_process_has_changed_is_withheld_until_that_process_has_ended(
    tmp_path: Path,
) -> None:
    changed = {
        "name": "say",
        "inputSchema": {"type": "object", "properties": {"conversation": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
    announced = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    (tmp_path / "portbook.toml").write_text(obedient(OLD, 'isolation = "session"'))
    with http_server(cwd=tmp_path, tools=(), env=environment(OURS=SECRET)) as server:
        one, other = HttpPeer(server, OLD), HttpPeer(server, OLD)
        plain = {"answer": {"result": _text("said")}}

        def is_withheld(peer: Peer) -> bool:
            return "TOOL_WITHHELD" in json.dumps(said(peer, **plain))

        assert not is_withheld(one)
        assert not is_withheld(other)
        said(other, **plain, offers=[changed], lines=[announced])
        wait_until(lambda: is_withheld(other))
        assert is_withheld(one)
        assert one.names() == []
        other.end_session()
        wait_until(lambda: not is_withheld(one))


def test_a_form_that_asks_for_a_token_reaches_the_client_and_no_secret_in_it(tmp_path: Path) -> None:
    form = {"type": "object", "properties": {"token": {"type": "string", "title": "your $SECRET"}}}
    question = {
        "id": "q",
        "method": "elicitation/create",
        "params": {"message": "?", "requestedSchema": form},
    }
    lines = [json.dumps({"jsonrpc": "2.0", **question})]
    with peer_of(tmp_path, obedient(OLD), env=environment(OURS=SECRET)) as peer:
        number = peer.start("tools/call", {"name": "box__say", "arguments": {"lines": lines}})
        asked = json.loads(peer.lines.get(timeout=30))
        field = asked["params"]["requestedSchema"]["properties"]["token"]
        assert field["type"] == "string"
        assert SECRET not in json.dumps(asked)
        peer.write({"method": "notifications/cancelled", "params": {"requestId": number}})


def test_a_server_is_spoken_to_in_the_revision_that_the_settings_name(tmp_path: Path) -> None:
    program = "from portbook import Toolset; toolset = Toolset('own')"
    (tmp_path / "behind").mkdir()
    (tmp_path / "behind" / "own.py").write_text(program)
    serve = f"cd behind && exec {sys.executable} -m portbook serve --stdio own.py"
    for named, spoken in (("", NEW), (f'revision = "{OLD}"', OLD), ('revision = "2025-06-18"', "2025-06-18")):
        settings = table("own", f"command = {json.dumps(['sh', '-c', serve])}", 'start = "eager"', named)
        with peer_of(tmp_path, settings) as peer:
            peer.names()
            wait_until(lambda spoken=spoken: spoken in _upstreams(tmp_path))


def _upstreams(folder: Path) -> str:
    command = [*PORTBOOK, "upstreams", "--json"]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=60, text=True).stdout


def _text(words: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": words}]}
