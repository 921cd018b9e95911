"""Entries of clients, read into servers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from portbook.adopt.servers_and_aliases import (
    FoundServer,
    ServerPlace,
    adopted_servers,
    found_servers,
    is_reserved,
    places_of,
    settings_text,
    unreserved,
)
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


@pytest.mark.parametrize("whole", [None, [], 7, {}, {"mcpServers": 7}])
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
        {"command": "a", "args": "--read-only"},
        {"command": "a", "args": {"0": "--safe"}},
        {"command": "a", "args": ["b", 1]},
        {"command": "a", "cwd": 5},
    ],
)
def test_nothing_is_turned_into_text_that_a_server_is_started_with(entry: Any) -> None:
    [server] = found("cursor", {"mcpServers": {"odd": entry}})
    assert server.left == "its command, its arguments or its folder are not texts"


def test_items_of_a_list_that_are_no_servers_are_named_by_their_place() -> None:
    [listed] = [client.name for client in CLIENTS if client.name == "continue"]
    whole: Any = ["x", {"name": "a", "command": "b"}, {"command": "c"}]
    for key in reversed(OF[listed].path):
        whole = {key: whole}
    assert {server.name: server.left for server in found(listed, whole)} == {
        "a": None,
        "entry 1": "it is not an object with a name",
        "entry 3": "it is not an object with a name",
    }


@pytest.mark.parametrize("entry", ["npx server", None, ["npx"], 7])
def test_what_is_no_entry_is_named_and_left(entry: Any) -> None:
    [server] = found("cursor", {"mcpServers": {"odd": entry}})
    assert (server.name, server.left) == ("odd", "it is not an object with a name")


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


CURSOR = ServerPlace(CLIENTS[2], Path("/c"), ("mcpServers",))
ZED = ServerPlace(CLIENTS[5], Path("/z"), ("context_servers",))


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("GitHub", "github"),
        ("my server!", "my_server"),
        ("é", "server"),
        ("a__b", "a_b"),
        ("x" * 99, "x" * 37),
    ],
)
def test_a_name_becomes_an_alias(name: str, alias: str) -> None:
    (server,) = adopted_servers([FoundServer(CURSOR, name, ("x",))], {})
    assert server.alias == alias


def test_the_same_server_in_two_clients_is_one_and_keeps_both_values() -> None:
    first = FoundServer(CURSOR, "a", ("x",), (("T", "1"),))
    second = FoundServer(ZED, "b", ("x",), (("T", "2"),))
    (server,) = adopted_servers([first, second], {})
    assert (server.alias, server.values_of(first), server.values_of(second)) == ("a", {"T": "1"}, {"T": "2"})


def test_entries_of_one_place_with_different_values_are_different_servers() -> None:
    work = FoundServer(CURSOR, "work", ("x",), (("T", "1"),))
    private = FoundServer(CURSOR, "private", ("x",), (("T", "2"),))
    again = FoundServer(CURSOR, "again", ("x",), (("T", "1"),))
    there = FoundServer(ZED, "there", ("x",), (("T", "2"),))
    servers = adopted_servers([work, private, again, there], {})
    assert [(each.alias, each.found) for each in servers] == [
        ("work", (work, again)),
        ("private", (private, there)),
    ]
    assert servers[1].values_of(there) == {"PRIVATE_T": "2"}


def test_entries_of_two_places_without_equal_values_meet_by_name() -> None:
    here = [FoundServer(CURSOR, name, ("x",), (("T", f"1 {name}"),)) for name in ("a", "b")]
    there = [FoundServer(ZED, name, ("x",), (("T", f"2 {name}"),)) for name in ("b", "a")]
    servers = adopted_servers([*here, *there], {})
    assert [[each.name for each in server.found] for server in servers] == [["a", "a"], ["b", "b"]]


def test_values_that_are_swapped_between_two_clients_do_not_share_a_variable() -> None:
    def server(place: ServerPlace, command: str, value: str) -> FoundServer:
        return FoundServer(place, command, (command,), (("T", value),))

    found = [server(CURSOR, "x", "1"), server(CURSOR, "y", "2"), server(ZED, "x", "2"), server(ZED, "y", "1")]
    assert [each.variables for each in adopted_servers(found, {})] == [{"T": "T"}, {"T": "Y_T"}]


def test_a_variable_of_our_entry_keeps_its_value() -> None:
    ours = FoundServer(CURSOR, "portbook", ("portbook",), (("T", "1"),))
    later = FoundServer(CURSOR, "later", ("x",), (("T", "2"),))
    (server,) = adopted_servers([later], {"a": {"command": ["x"], "env": {"T": {"env": "T"}}}}, [ours])
    assert (server.alias, server.values_of(later)) == ("later", {"LATER_T": "2"})


def test_a_server_that_the_settings_have_already_keeps_its_alias() -> None:
    found = FoundServer(CURSOR, "a", ("x",), (("T", "1"),), cwd="/w")
    (server,) = adopted_servers([found], {})
    text = settings_text("[mcp.other]\ncommand = ['y']", [server], ["other"], "/runs")
    tables = tomllib.loads(text)["mcp"]
    assert tables == {"other": {"command": ["y"]}, "a": server.table()}
    renamed = {"mine": tables["a"], "a": {"command": ["z"]}}
    (again,) = adopted_servers([found], renamed)
    assert again.alias == "mine"
    assert settings_text(text, [again], renamed, "/runs") == text
    (new,) = adopted_servers([FoundServer(CURSOR, "a", ("new",))], renamed)
    assert new.alias == "a_2"


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("NODE_ENV", "production", False),
        ("ROOT", "/home/somebody/work-2026", False),
        ("REGION", "eu-central-1", False),
        ("GITHUB_TOKEN", "short", True),
        ("NOTION", "ntn81273981273abcdef", True),
        ("ANY", "${input:key}", True),
    ],
)
def test_words_and_paths_are_not_redacted_from_results(name: str, value: str, is_secret: bool) -> None:
    (server,) = adopted_servers([FoundServer(CURSOR, "a", ("x",), ((name, value),))], {})
    reference = {"env": name} if is_secret else {"env": name, "secret": False}
    assert server.table()["env"] == {name: reference}


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("PYTHONPATH", True),
        ("LD_PRELOAD", True),
        ("DYLD_INSERT_LIBRARIES", True),
        ("PATH", True),
        ("HOME", True),
        ("SSL_CERT_FILE", True),
        ("https_proxy", True),
        ("LC_ALL", True),
        ("PORTBOOK_CONFIG", True),
        ("GITHUB_TOKEN", False),
        ("MY_PATH", False),
        ("MEMORY_FILE_PATH", False),
    ],
)
def test_names_that_portbook_itself_obeys_are_reserved(name: str, is_so: bool) -> None:
    assert is_reserved(name) is is_so


def test_a_prefix_never_makes_a_reserved_name() -> None:
    assert unreserved("FILES_", "HOME") == "FILES_HOME"
    assert unreserved("LD_", "LIBRARY_PATH") == "ADOPTED_LD_LIBRARY_PATH"
    assert unreserved("PORTBOOK_", "HOME") == "ADOPTED_PORTBOOK_HOME"
