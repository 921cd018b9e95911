"""The entry of a server in the form of each client."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from portbook.apis.openapi.yaml_reader import parse_yaml
from portbook.exports.client_entry_and_variables import (
    ClientEntry,
    ConnectedServer,
    NeededSecrets,
    NotForClient,
    StartedServer,
    entry_for,
    needed_secrets,
)
from portbook.exports.client_table import CLIENTS as KNOWN

CLIENTS = {client.name: client for client in KNOWN}
COMMAND = ['/opt/it\'s "here"/portbook', "serve", "--stdio", "/a b/ünï.py", "c:\\d"]
STARTED = StartedServer("my-tools", COMMAND, ("SHOP_KEY",))
CONNECTED = ConnectedServer("my-tools", "https://mcp.example.com/mcp", has_key=True)
READERS: dict[str, Any] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": lambda text: parse_yaml(text.encode()),
}
# What the client reads, by its own documentation: where the servers are, and which member has what.
COMMANDS: dict[str, Any] = {
    "goose": lambda entry: [entry["cmd"], *entry["args"]],
    "opencode": lambda entry: entry["command"],
}
ADDRESSES = {"windsurf": "serverUrl", "gemini": "httpUrl", "goose": "uri"}
NO_VARIABLES = {"claude-desktop", "zed", "cline", "lm-studio", "copilot", "junie"}


def read(client: str, made: ClientEntry) -> Any:
    found = READERS[CLIENTS[client].form](made.text)
    assert found == made.document
    for key in CLIENTS[client].path:
        found = found[key]
    return found[0] if client == "continue" else found["my-tools"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_the_command_that_was_meant(client: str) -> None:
    made = entry_for(CLIENTS[client], STARTED)
    entry = read(client, made)
    plain = [entry.get("command"), *entry.get("args", [])]
    assert (COMMANDS[client](entry) if client in COMMANDS else plain) == COMMAND
    assert made.left_to_person == (("SHOP_KEY",) if client in NO_VARIABLES else ())
    assert ("SHOP_KEY" in made.text) is (client not in NO_VARIABLES)


@pytest.mark.parametrize("client", sorted(set(CLIENTS) - {"claude-desktop"}))
def test_a_client_reads_the_address_and_finds_the_key_in_a_variable(client: str) -> None:
    made = entry_for(CLIENTS[client], CONNECTED)
    entry = read(client, made)
    assert entry[ADDRESSES.get(client, "url")] == "https://mcp.example.com/mcp"
    assert made.left_to_person == (("PORTBOOK_KEY",) if client in NO_VARIABLES else ())
    assert ("PORTBOOK_KEY" in made.text) is (client not in NO_VARIABLES)


def test_a_client_that_only_starts_commands_says_so() -> None:
    with pytest.raises(NotForClient, match="only starts commands"):
        entry_for(CLIENTS["claude-desktop"], CONNECTED)


@pytest.mark.parametrize(
    ("client", "wanted"),
    [
        ("claude-code", {"Authorization": "Bearer ${PORTBOOK_KEY}"}),
        ("cursor", {"Authorization": "Bearer ${env:PORTBOOK_KEY}"}),
        ("opencode", {"Authorization": "Bearer {env:PORTBOOK_KEY}"}),
    ],
)
def test_a_header_refers_to_the_variable_as_the_client_writes_it(client: str, wanted: dict[str, str]) -> None:
    assert read(client, entry_for(CLIENTS[client], CONNECTED))["headers"] == wanted


def test_vs_code_asks_for_what_it_does_not_know() -> None:
    inputs = entry_for(CLIENTS["vscode"], CONNECTED).document["inputs"]
    assert inputs == [
        {"type": "promptString", "id": "PORTBOOK_KEY", "description": "PORTBOOK_KEY", "password": True}
    ]


def test_nothing_is_said_of_variables_where_there_are_none() -> None:
    for client in CLIENTS.values():
        made = entry_for(client, StartedServer("x", ["portbook"]))
        assert made.left_to_person == ()
        assert not any(word in made.text for word in ('"env', "inputs", "env_"))


def test_each_source_is_named_once_wherever_it_stands() -> None:
    tables = {
        "http": {
            "shop": {
                "base_url": "https://shop.example",
                "auth": {"key": {"env": "SHOP_KEY"}, "login": {"username": "me", "password": {"file": "pw"}}},
            },
            "bank": {"auth": [{"key": {"env": "SHOP_KEY"}}, {"key": {"env": "BANK_KEY"}}]},
        },
        "mcp": {"github": {"command": ["x"], "env": {"TOKEN": {"env": "GITHUB_TOKEN"}, "MODE": "quiet"}}},
    }
    assert needed_secrets(tables) == NeededSecrets(("SHOP_KEY", "BANK_KEY", "GITHUB_TOKEN"), ("pw",))


def test_settings_without_secrets_need_none() -> None:
    assert needed_secrets({"http": {}, "mcp": {"a": {"env": {"FILE": "x"}}}}) == NeededSecrets((), ())
