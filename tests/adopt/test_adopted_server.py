"""Entries of clients as servers of the settings."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from portbook.adopt.adopted_server import adopted_servers, settings_text
from portbook.adopt.found_server import FoundServer, ServerPlace
from portbook.exports.client_table import CLIENTS

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
