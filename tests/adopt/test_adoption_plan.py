"""What an adoption makes of a client's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.adopt.adoption_plan import planned_clients, read_client_file
from portbook.adopt.client_document import NotReadable
from portbook.adopt.servers_and_aliases import ServerPlace, adopted_servers
from portbook.exports.client_table import CLIENTS

OF = {client.name: client for client in CLIENTS}
SETTINGS = Path("/s/portbook.toml")


def planned(client: str, path: Path, whole: Any) -> Any:
    path.write_text(json.dumps(whole))
    file = read_client_file(ServerPlace(OF[client], path, OF[client].path))
    assert file is not None
    adopted = adopted_servers([each for each in file.servers if each.left is None], {})
    ((change, entries),) = planned_clients([file], adopted, ["p"], SETTINGS, "now")
    assert (change.before, change.backup) == (path.read_bytes(), path.with_name(f"{path.name}.bak.now"))
    return json.loads(change.after), [(each.path, each.name) for each in entries]


def test_each_project_gets_an_entry_of_its_own(tmp_path: Path) -> None:
    servers = {"mcpServers": {"a": {"command": "x"}}}
    whole = {
        **servers,
        "projects": {"/p": {**servers, "k": 1}, "/q": {"mcpServers": {"b": {"command": "y"}}}},
    }
    after, entries = planned("claude-code", tmp_path / "file", whole)
    assert [path for path, _ in entries] == [
        ("mcpServers",),
        ("projects", "/p", "mcpServers"),
        ("projects", "/q", "mcpServers"),
    ]
    assert after["projects"]["/p"]["k"] == 1
    entry = after["projects"]["/q"]["mcpServers"]["portbook"]
    assert entry == {
        "type": "stdio",
        "command": "p",
        "args": ["serve", "--stdio", "--config", str(SETTINGS), "--server", "b"],
    }


def test_an_entry_of_the_same_name_that_is_not_ours_stays(tmp_path: Path) -> None:
    whole = {"mcpServers": {"portbook": {"command": "mine", "disabled": True}, "a": {"command": "x"}}}
    after, entries = planned("cursor", tmp_path / "file", whole)
    assert after["mcpServers"].keys() == {"portbook", "portbook-adopted"}
    assert entries == [(("mcpServers",), "portbook-adopted")]


def test_a_file_that_is_not_there_is_none_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    place = ServerPlace(OF["cursor"], tmp_path / "file", ("mcpServers",))
    assert read_client_file(place) is None
    place.file.write_text("{")
    with pytest.raises(NotReadable):
        read_client_file(place)
