"""A client after `portbook adopt`: its file is read as it does, and the official client drives its entry."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from portbook.exports.client_table import CLIENTS
from portbook.sandbox.confined_command import problem_of_system
from support import sdks
from support.client_home import read_as_client
from support.portbook_process import environment, run

DESKTOP: Final = next(client for client in CLIENTS if client.name == "claude-desktop")
# Arguments of the tools that need some; the others are called without.
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "everything__echo": {"message": "hello"},
    "everything__get-sum": {"a": 2, "b": 3},
    "everything__get-annotated-message": {"messageType": "success"},
    "everything__get-resource-reference": {"resourceType": "Text", "resourceId": 1},
    "everything__gzip-file-as-resource": {
        "name": "x.gz",
        "data": "data:text/plain;base64,aGVsbG8=",
        "outputType": "resource",
    },
    "everything__get-structured-content": {"location": "Chicago"},
    "everything__simulate-research-query": {"topic": "tea"},
    "everything__trigger-url-elicitation": {"url": "https://example.com"},
    "everything__trigger-long-running-operation": {"duration": 0.1, "steps": 1},
}


def files_arguments(folder: str) -> dict[str, dict[str, Any]]:
    path = f"{folder}/a.txt"
    new = f"{folder}/b.txt"
    return {
        "files__read_file": {"path": path},
        "files__read_text_file": {"path": path},
        "files__read_media_file": {"path": path},
        "files__read_multiple_files": {"paths": [path]},
        "files__write_file": {"path": new, "content": "new"},
        "files__edit_file": {"path": path, "edits": [{"oldText": "a", "newText": "b"}]},
        "files__create_directory": {"path": f"{folder}/c"},
        "files__list_directory": {"path": folder},
        "files__list_directory_with_sizes": {"path": folder},
        "files__directory_tree": {"path": folder},
        "files__move_file": {"source": f"{folder}/m.txt", "destination": f"{folder}/moved.txt"},
        "files__search_files": {"path": folder, "pattern": "*.txt"},
        "files__get_file_info": {"path": folder},
    }


@pytest.mark.covers("adopt.session")
def test_the_official_client_lists_and_calls_every_tool_of_two_real_servers(tmp_path: Path) -> None:
    check_every_tool(tmp_path)
    assert confined_calls(tmp_path) == {False}


@pytest.mark.skipif(problem_of_system() is not None, reason=str(problem_of_system()))
@pytest.mark.covers("adopt.sandbox-session")
def test_in_the_sandbox_that_adopting_proposes_every_tool_works(tmp_path: Path) -> None:
    check_every_tool(tmp_path, "--sandbox")
    assert confined_calls(tmp_path) == {True}


def confined_calls(home: Path) -> set[bool | None]:
    """Return what the records of calls say on whether their server was confined."""
    lines = [
        json.loads(line)
        for file in (home / ".config" / "portbook" / "runs").rglob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    return {line["confined"] for line in lines if "confined" in line}


def check_every_tool(tmp_path: Path, *options: str) -> None:
    """Adopt two real servers, and call every tool through the entry that the client has then."""
    try:
        python, modules = sdks.python_sdk(), sdks.node_packages()
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    data = tmp_path / "data"
    data.mkdir()
    for name in ("a.txt", "m.txt"):
        (data / name).write_text("a")

    def entry(name: str, *arguments: str) -> dict[str, Any]:
        program = modules.path(f"@modelcontextprotocol/server-{name}", "dist", "index.js")
        return {"command": modules.node.node, "args": [str(program), *arguments]}

    file = tmp_path / ".config" / "Claude" / "claude_desktop_config.json"
    file.parent.mkdir(parents=True)
    everything = {**entry("everything"), "env": {"A_VARIABLE": "a value of a client"}}
    servers = {"everything": everything, "files": entry("filesystem", str(data))}
    file.write_text(json.dumps({"mcpServers": servers}, indent=2))
    done = run("adopt", "--yes", *options, cwd=tmp_path, env=environment(HOME=str(tmp_path)))
    assert done.code == 0, done.err
    adopted = read_as_client(DESKTOP, file)["portbook"]

    order: dict[str, Any] = {
        "name": "adopted",
        "command": [adopted["command"], *adopted["args"]],
        "cwd": str(tmp_path),
        "env": adopted["env"],
        "mode": "legacy",
        "call_each": ARGUMENTS | files_arguments(str(data)),
        **{key: [] for key in ("call", "read", "get", "complete")},
    }
    explored = subprocess.run(
        [python, sdks.HERE / "python_explorer.py"],
        input=json.dumps([order]).encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=150,
    )
    seen = json.loads(explored.stdout)["adopted"]
    listed, calls = [tool["name"] for tool in seen["tools"]], seen["calls"]
    assert len(listed) > 20
    assert {name.partition("__")[0] for name in listed} == {"everything", "files"}
    assert [*calls] == listed
    failed = {
        name: outcome
        for name, outcome in calls.items()
        if "error" in outcome or outcome["result"].get("isError")
    }
    assert not failed, json.dumps(failed)
    assert calls["everything__echo"]["result"]["content"][0]["text"] == "Echo: hello"
    assert (data / "b.txt").read_text() == "new"
