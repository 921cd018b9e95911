"""Servers that repeat a secret which the settings give them: it reaches no client, no lock and no store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import forked_process
from support.mcp_peer import peer_of, table
from support.portbook_process import PORTBOOK, TESTS, environment

SECRET = "s3cr3t-of-ours-42"
ESCAPED = "s3cr3t%2Dof%2Dours%2D42"
CLEAN = {"name": "clean", "inputSchema": {"type": "object"}}


def telling(folder: Path, *lines: str, **lists: Any) -> str:
    """The settings of a server that offers these lists, with `$SECRET` for its secret."""
    (folder / "lists.json").write_text(json.dumps(lists))
    command = json.dumps([sys.executable, str(TESTS / "fixtures" / "telling_server.py"), "lists.json"])
    return table("box", f"command = {command}", 'env = { SECRET = { env = "OURS" } }', *lines)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    given = environment(OURS=SECRET)
    return forked_process.run(
        [*PORTBOOK, *arguments], cwd=folder, env=given, capture_output=True, timeout=60, text=True
    )


def kept(folder: Path) -> bytes:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lists.json")
    return b"".join(path.read_bytes() for path in files)


TELLING: dict[str, dict[str, Any]] = {
    "a description": {"tools": [{**CLEAN, "name": "t", "description": "d $SECRET"}]},
    "a description, escaped": {"tools": [{**CLEAN, "name": "t", "description": f"d {ESCAPED}"}]},
    "a schema": {
        "tools": [
            {"name": "t", "inputSchema": {"type": "object", "properties": {"$SECRET": {"const": "$SECRET"}}}}
        ]
    },
    "instructions": {"instructions": "use $SECRET"},
    "a prompt": {"prompts": [{"name": "t", "arguments": [{"name": "x", "description": "$SECRET"}]}]},
}


@pytest.mark.parametrize("place", TELLING)
def test_a_definition_that_has_a_secret_is_a_finding_and_is_not_pinned(tmp_path: Path, place: str) -> None:
    lists: dict[str, Any] = {"tools": [], **TELLING[place]}
    settings = telling(tmp_path, **{**lists, "tools": [CLEAN, *lists["tools"]]})
    (tmp_path / "portbook.toml").write_text(settings.replace("first-use", "lock"))
    pinned, scanned = run(tmp_path, "pin"), run(tmp_path, "scan", "--json")
    assert pinned.returncode == 1
    assert '"check":"secrets","tier":"hard"' in "".join(scanned.stdout.split())
    said = pinned.stdout + pinned.stderr + scanned.stdout + scanned.stderr
    assert SECRET not in said
    assert ESCAPED not in said
    lock = (tmp_path / "portbook.lock").read_text()
    assert list(json.loads(lock)["mcp"]["box"]) == ["tools"]
    assert list(json.loads(lock)["mcp"]["box"]["tools"]) == ["clean"]
    run(tmp_path, "pin", "--force")
    assert SECRET.encode() not in kept(tmp_path)
    assert ESCAPED.encode() not in kept(tmp_path)


def test_no_list_tells_a_client_a_secret(tmp_path: Path) -> None:
    settings = telling(
        tmp_path,
        tools=[CLEAN, {**CLEAN, "name": "t", "description": "d $SECRET"}, {**CLEAN, "name": "x$SECRET"}],
        prompts=[{"name": "p", "description": "d $SECRET"}],
        resources=[
            {"uri": "r:1", "name": "n $SECRET", "title": "$SECRET", "description": "d $SECRET"},
            {"uri": "r:$SECRET", "name": "n"},
        ],
        resourceTemplates=[{"uriTemplate": "t:{x}", "name": "n $SECRET"}],
        instructions="use $SECRET",
    )
    with peer_of(tmp_path, settings, env=environment(OURS=SECRET)) as peer:
        listed = [
            peer.answer(method)["result"]
            for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
        ]
    told = json.dumps([peer.hello, *listed])
    assert SECRET not in told
    assert [each["name"] for each in listed[0]["tools"]] == ["box__clean"]
    assert [each["uri"] for each in listed[2]["resources"]] == ["r:1"]
    assert SECRET.encode() not in kept(tmp_path)


def test_the_name_of_a_logger_has_no_secret(tmp_path: Path) -> None:
    said = {"level": "error", "data": "d", "logger": "l $SECRET"}
    with peer_of(tmp_path, telling(tmp_path, tools=[CLEAN], logs=said), env=environment(OURS=SECRET)) as peer:
        peer.call("box__clean")
    messages = [each for each in peer.heard if each["method"] == "notifications/message"]
    assert [each["params"]["logger"] for each in messages] == ["l [redacted]"]
