"""One program with several accounts stays several servers, each with its own values."""

from __future__ import annotations

import json
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from support.client_home import ClientHome, read_as_client

SETTINGS: Final = ".config/portbook/portbook.toml"


def values_by_server(home: ClientHome, client: Any) -> dict[str, dict[str, str]]:
    """Return the variables that each server gets through a client's entry."""
    entry = read_as_client(client, home.file(client))["portbook"]
    words = entry["args"]
    tables = tomllib.loads((home.path / SETTINGS).read_text())["mcp"]
    return {
        alias: {name: entry["env"][source["env"]] for name, source in tables[alias]["env"].items()}
        for word, alias in pairwise(words)
        if word == "--server"
    }


def write_accounts(home: ClientHome, client: Any, **tokens: str) -> None:
    entry = home.entry(client)
    servers = {name: {**entry, "env": {"FILES_TOKEN": token}} for name, token in tokens.items()}
    home.file(client).write_text(json.dumps({client.path[0]: servers}, indent=2))


@pytest.mark.covers("adopt.accounts")
def test_two_accounts_of_one_program_stay_two_servers_in_every_client(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, "cursor", "windsurf")
    cursor, windsurf = home.clients
    write_accounts(home, cursor, work="token-1", private="token-2")
    write_accounts(home, windsurf, private="token-2", work="token-1")
    before = home.contents()
    done = home.adopt("--yes")
    assert done.code == 0, done.err
    wanted = {"work": {"FILES_TOKEN": "token-1"}, "private": {"FILES_TOKEN": "token-2"}}
    assert values_by_server(home, cursor) == wanted
    assert values_by_server(home, windsurf) == wanted
    assert "there is nothing new to adopt" in home.adopt("--yes").err
    assert home.adopt("--undo").code == 0
    assert home.contents() == before


def test_an_account_that_comes_later_takes_no_value_of_the_first(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, "cursor")
    (cursor,) = home.clients
    write_accounts(home, cursor, work="token-1")
    assert home.adopt("--yes").code == 0
    file = home.file(cursor)
    whole = json.loads(file.read_text())
    whole["mcpServers"]["private"] = {**home.entry(cursor), "env": {"FILES_TOKEN": "token-2"}}
    file.write_text(json.dumps(whole, indent=2))
    assert home.adopt("--yes").code == 0
    assert values_by_server(home, cursor) == {
        "work": {"FILES_TOKEN": "token-1"},
        "private": {"FILES_TOKEN": "token-2"},
    }
