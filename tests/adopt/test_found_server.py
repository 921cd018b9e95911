"""Entries of clients, read into servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.adopt.found_server import FoundServer, found_servers, places_of
from portbook.exports.client_table import CLIENTS

OF = {client.name: client for client in CLIENTS}


def found(client: str, whole: Any) -> list[FoundServer]:
    places = places_of(OF[client], Path("/x"), whole)
    return [server for place in places for server in found_servers(place, whole)]


@pytest.mark.parametrize(
    ("client", "entry", "command", "url"),
    [
        ("cursor", {"command": "a", "args": ["b"]}, ("a", "b"), None),
        ("cursor", {"url": "https://a.example"}, (), "https://a.example"),
        ("windsurf", {"serverUrl": "https://a.example"}, (), "https://a.example"),
        ("gemini", {"httpUrl": "https://a.example"}, (), "https://a.example"),
        ("opencode", {"type": "local", "command": ["a", "b"]}, ("a", "b"), None),
        ("zed", {"source": "custom", "command": {"path": "a", "args": ["b"]}}, ("a", "b"), None),
        ("goose", {"type": "streamable_http", "uri": "https://a.example"}, (), "https://a.example"),
        ("codex", {"url": "https://a.example", "http_headers": {"A": "b"}}, (), "https://a.example"),
    ],
)
def test_each_client_has_its_own_keys(
    client: str, entry: Any, command: tuple[str, ...], url: str | None
) -> None:
    whole: Any = {"s": entry}
    for key in reversed(OF[client].path):
        whole = {key: whole}
    (server,) = found(client, whole)
    assert (server.command, server.url, server.left) == (command, url, None)


def test_claude_code_has_servers_of_projects() -> None:
    entry = {"command": "a"}
    whole = {"mcpServers": {"u": entry}, "projects": {"/p": {"mcpServers": {"v": entry}}, "/q": {}}}
    assert [(each.name, each.place.path) for each in found("claude-code", whole)] == [
        ("u", ("mcpServers",)),
        ("v", ("projects", "/p", "mcpServers")),
    ]


@pytest.mark.parametrize("whole", [None, [], 7, {}, {"mcpServers": 7}, {"mcpServers": {"a": 7}}])
def test_what_is_no_server_is_passed_over(whole: Any) -> None:
    assert found("cursor", whole) == []


@pytest.mark.parametrize(
    ("args", "is_left"),
    [
        (["--token", "abcdef"], True),
        (["--api-key=abcdef"], True),
        (["gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a"], True),
        (["--token"], False),
        (["--port", "80"], False),
        (["-y", "package@1.2.3"], False),
    ],
)
def test_a_secret_among_the_arguments_is_not_copied(args: list[str], is_left: bool) -> None:
    (server,) = found("cursor", {"mcpServers": {"a": {"command": "x", "args": args}}})
    assert (server.left is not None) is is_left


def test_secrets_in_the_clear_are_counted_and_not_shown() -> None:
    entry = {"command": "x", "env": {"GITHUB_TOKEN": "abc", "DEBUG": "1", "API_KEY": "${KEY}"}}
    (server,) = found("cursor", {"mcpServers": {"a": entry}})
    assert (server.clear_secrets, server.shown) == (1, "x")


def test_secrets_among_arguments_and_in_addresses_are_counted_and_not_shown() -> None:
    args = ["--api-key", "hunter2hunter2", "--password=S3cr3t", "--port=80", "value-1234567890"]
    entry = {"command": "/bin/x", "args": args, "env": {"A_TOKEN": "value-1234567890"}}
    (server,) = found("cursor", {"mcpServers": {"a": entry}})
    assert server.shown == "x --api-key [redacted] --password=[redacted] --port=80 [redacted]"
    assert server.clear_secrets == 3
    url = "https://a.example/mcp?key=gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a"
    (remote,) = found("cursor", {"mcpServers": {"a": {"url": url}}})
    assert (remote.shown, remote.clear_secrets) == ("https://a.example/mcp", 1)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "a\0"},
        {"command": "a", "args": ["\ud83d"]},
        {"command": "a", "cwd": "/b\0"},
        {"command": "a", "env": {"B": "\udfff"}},
        {"command": "a", "env": {"B\0": "c"}},
        {"url": "https://a.example/\ud800"},
        {"url": "https://a.example", "headers": {"B": "c\0"}},
    ],
)
def test_what_no_process_can_be_given_is_left(entry: Any) -> None:
    (server,) = found("cursor", {"mcpServers": {"a": entry}})
    assert server.left == "it has a character that cannot be passed on"
