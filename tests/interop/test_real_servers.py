"""Servers from the registries: through Portbook, an official client sees of them what it sees without it."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import real_servers, sdks
from support.mcp_peer import peer_of, ready_server, table
from support.portbook_process import PORTBOOK, environment, http_server, run

SERVERS = ("everything", "filesystem", "fastmcp")
# The era in which each server is visited without Portbook: the newest that it speaks.
ERAS = {"everything": "legacy", "filesystem": "legacy", "fastmcp": "auto"}
# The doors that each client comes through, and the era that it speaks there: together, all of them. Behind
# each door, servers have the same transport as far as they know it.
THROUGH = {
    "python": {"stdio": "auto", "http": "legacy"},
    "typescript": {"stdio": "legacy", "http": "auto"},
}

# What depends on who called before, or on the machine: the answer says only that it was done.
CHANGING = ("toggle-simulated-logging", "toggle-subscriber-updates", "get-env")
RUN_AS_TASK = "simulate-research-query"

_KEYS = ("call", "read", "get", "complete")

Seen = dict[str, Any]


def _settings(where: dict[str, str]) -> str:
    # Three programs start while others of the suite run: the thirty seconds of a call can be too short.
    lines = ("prefix = false", "timeout_ms = 100_000", "may_ask = ['elicitation', 'roots', 'sampling']", "")
    tables = ("\n".join((f"[mcp.{alias}]", how, *lines)) for alias, how in where.items())
    return "[docs]\nenabled = false\n" + "".join(tables)


@contextlib.contextmanager
def _behind_portbook(folder: Path) -> Iterator[Callable[[str], Seen]]:
    """All servers behind two Portbooks, one for each door; yields what explores them with a client."""
    files, stdio, http = folder / "files", folder / "stdio", folder / "http"
    for each in (files, stdio, http):
        each.mkdir()
    commands = real_servers.commands(files)
    with real_servers.over_http(files) as addresses:
        by_command = {name: f"command = {json.dumps(command)}" for name, command in commands.items()}
        by_address = {name: f"url = {json.dumps(url)}" for name, url in addresses.items()}
        (stdio / "portbook.toml").write_text(_settings(by_command))
        (http / "portbook.toml").write_text(_settings({**by_command, **by_address}))
        pinned = run("pin", cwd=http)
        assert pinned.code == 0, pinned.out
        shutil.copy(http / "portbook.lock", stdio)  # they offer the same over either transport
        with http_server(cwd=http, tools=()) as portbook:
            doors = {
                "stdio": {"command": [*PORTBOOK, "serve", "--stdio"], "cwd": str(stdio)},
                "http": {"url": f"{portbook.url}/mcp"},
            }
            direct = {name: {"command": command, "cwd": str(files)} for name, command in commands.items()}
            direct["fastmcp"] = {"url": addresses["fastmcp"]}  # which starts slowly
            yield functools.partial(_explore, files, doors, direct)


def _explore(files: Path, doors: dict[str, Any], direct: dict[str, Any], client: str) -> Seen:
    """Let a client visit every server, directly and through both doors of Portbook."""
    own = files / client
    own.mkdir()
    orders = real_servers.orders(own)
    all_at_once = {key: [each for some in orders.values() for each in some[key]] for key in _KEYS}
    through = THROUGH[client].items()
    visits = [{"name": door, "mode": mode, **doors[door], **all_at_once} for door, mode in through]
    for server, where in direct.items():
        visits.append({"name": server, "mode": ERAS[server], **where, **orders[server]})
    seen = real_servers.comparable(_visit(client, visits), own)
    return {name: {"client": client, **each} for name, each in seen.items()}


def _visit(client: str, visits: list[dict[str, Any]]) -> Seen:
    if client == "python":
        command = [str(sdks.python_sdk()), str(sdks.HERE / "python_explorer.py")]
    else:
        modules = sdks.node_packages()
        command = [modules.node.node, str(sdks.HERE / "typescript_explorer.mjs"), str(modules.folder)]
    done = subprocess.run(
        command, input=json.dumps(visits), capture_output=True, text=True, env=environment(), timeout=280
    )
    print(done.stderr)  # shown where something fails
    assert done.returncode == 0
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """What each client saw.

    One after the other: a server that they share asks for roots once it has started, and of two clients with
    calls under way nothing says which one is meant.
    """
    try:
        with _behind_portbook(tmp_path_factory.mktemp("servers")) as explore:
            seen = {client: explore(client) for client in THROUGH}
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    assert [each["failed"] for own in seen.values() for each in own.values() if "failed" in each] == []
    return seen


# The first test waits for the clients and servers to be installed, too.
pytestmark = pytest.mark.timeout(600)

PAIRS = [(client, door, server) for client, doors in THROUGH.items() for door in doors for server in SERVERS]


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, explored: dict[str, Seen]) -> tuple[Seen, Seen]:
    """What a client saw of a server through Portbook, and what it saw without."""
    client, door, server = request.param
    return explored[client][door], explored[client][server]


def _by(key: str, entries: list[Any]) -> dict[str, Any]:
    return {each[key]: each for each in entries}


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    """What clients see of an entry, without the server's own keys for them, and hints that we add."""
    left_out = ("_meta", "execution", "annotations")
    return {name: value for name, value in entry.items() if name not in left_out}


def _ending(answer: dict[str, Any]) -> dict[str, Any]:
    result = answer.get("result", {})
    kept = ("content", "structuredContent", "contents", "messages", "completion")
    return {
        "error": "error" in answer or bool(result.get("isError")),
        **{name: result[name] for name in kept if name in result},
    }


@pytest.mark.covers("design.servers.registries")
def test_calls_end_as_they_do_without_portbook(pair: tuple[Seen, Seen]) -> None:
    through, direct = pair
    for name, answer in direct["calls"].items():
        if json.loads(name)[0] == RUN_AS_TASK:  # called plainly it is an error; Portbook runs the task
            assert not _ending(through["calls"][name])["error"]
            continue
        ours, theirs = _ending(through["calls"][name]), _ending(answer)
        if json.loads(name)[0] in CHANGING or theirs["error"]:
            ours, theirs = {"error": ours["error"]}, {"error": theirs["error"]}
        assert ours == theirs, name


def test_every_tool_is_listed_as_its_server_defines_it_and_called_by_these_tests(
    pair: tuple[Seen, Seen],
) -> None:
    through, direct = pair
    listed, called = _by("name", through["tools"]), {json.loads(name)[0] for name in direct["calls"]}
    for tool in direct["tools"]:
        assert _shown(listed[tool["name"]]) == _shown(tool)
        assert listed[tool["name"]]["annotations"].items() >= tool.get("annotations", {}).items()
        assert tool["name"] in called


def test_resources_templates_and_prompts_are_listed_as_their_server_defines_them(
    pair: tuple[Seen, Seen],
) -> None:
    through, direct = pair
    for part, key in (("resources", "uri"), ("templates", "uriTemplate"), ("prompts", "name")):
        listed = _by(key, through[part])
        for entry in direct.get(part, []):
            if "/session/" not in entry.get("uri", ""):  # made by a call, for those who called
                assert _shown(listed[entry[key]]) == _shown(entry)


def test_progress_and_questions_reach_the_client(pair: tuple[Seen, Seen]) -> None:
    through, direct = pair
    for name, answer in direct["calls"].items():
        ours = through["calls"][name]
        # A client that answers with its next request reports its own rounds as progress, without a total.
        steps = [[step for step in each["progress"] if step[1]] for each in (ours, answer)]
        # The TypeScript client loses the last reports, where one read brings them and the result.
        if through["client"] == "typescript":
            steps = [each[: min(map(len, steps))] for each in steps]
        assert steps[0] == steps[1], name
        # A server that asks for folders when it starts may do so during any call.
        asked = [sorted(set(each["asked"]) - {"roots/list"}) for each in (ours, answer)]
        assert asked[0] == asked[1], name


def test_reads_prompts_and_completions_answer_as_they_do_without_portbook(pair: tuple[Seen, Seen]) -> None:
    through, direct = pair
    for part in ("reads", "gets", "completions"):
        for name, answer in direct.get(part, {}).items():
            assert _ending(through[part][name]) == _ending(answer), name


@pytest.mark.covers("design.servers.slow_start")
def test_a_server_that_starts_slowly_and_refuses_a_handshake_is_started_once(tmp_path: Path) -> None:
    # Longer than an answer to the first question is waited for; then two questions wait to be read.
    wrapper = f'echo started >> "{tmp_path}/starts"; sleep 3.2; exec "$@"'
    try:
        server = [str(sdks.fastmcp()), str(sdks.HERE / "fastmcp_server.py")]
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    command = json.dumps(["sh", "-c", wrapper, "sh", *server])
    with peer_of(tmp_path, table("shop", f"command = {command}", "timeout_ms = 100_000")) as peer:
        asked = peer.start("tools/call", {"name": "shop__count", "arguments": {"items": ["a", "b"]}})
        assert peer.finish(asked, seconds=100)["result"]["structuredContent"] == {"result": 2}
        assert ready_server(tmp_path)["revision"] == "2026-07-28"
    assert (tmp_path / "starts").read_text() == "started\n"
