"""Undoing in clients' files that have changed since: the servers come back, and what changed stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.exports.client_table import CLIENTS
from support.client_home import ClientHome, read_as_client


@pytest.mark.covers("adopt.given-back")
@pytest.mark.parametrize(
    "client",
    [each for each in CLIENTS if each.name in ("claude-code", "cursor", "codex", "goose", "continue")],
    ids=lambda client: client.name,
)
def test_in_a_file_that_has_changed_the_servers_stand_in_place_of_our_entry(
    tmp_path: Path, client: Any
) -> None:
    home = ClientHome(tmp_path, client.name)
    file = home.file(client)
    before, servers = file.read_bytes(), read_as_client(client, file)
    assert home.adopt("--yes").code == 0
    file.write_bytes(file.read_bytes().replace(b"nothing", b"something"))
    undone = home.adopt("--undo")
    told = "our entry was replaced by what was there before: files; it was "
    assert f"conflict: {file} has changed since; {told}" in undone.err
    assert undone.code == 1
    found = read_as_client(client, file)
    assert found.keys() == {"files", "off"}
    assert found["files"] == servers["files"]
    assert b"something" in file.read_bytes()
    (backup,) = file.parent.glob(f"{file.name}.bak.*")
    assert backup.read_bytes() == before


def test_a_server_whose_name_is_taken_is_named_with_the_way_to_restore_it(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, "cursor")
    (cursor,) = home.clients
    file, entry = home.file(cursor), home.entry(cursor)
    servers = {"files": entry, "more": {**entry, "args": [*entry["args"], "silent"]}}
    file.write_text(json.dumps({"mcpServers": servers}, indent="\t"))
    assert home.adopt("--yes").code == 0
    whole = json.loads(file.read_text())
    whole["mcpServers"]["files"] = {"command": "mine"}
    file.write_text(json.dumps(whole, indent="\t"))
    undone = home.adopt("--undo")
    (backup,) = file.parent.glob(f"{file.name}.bak.*")
    assert f"before: more; not given back: files; to restore, copy from {backup}" in undone.err
    expected = {"mcpServers": {"more": servers["more"], "files": {"command": "mine"}}}
    assert file.read_text() == json.dumps(expected, indent="\t")
