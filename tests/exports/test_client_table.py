"""The table of clients is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.exports.client_table import CLIENTS, client_files


def test_names_are_distinct_and_every_client_has_a_file() -> None:
    assert len({client.name for client in CLIENTS}) == len(CLIENTS)
    for client in CLIENTS:
        assert all(
            file.is_relative_to("/home/x") for file in client_files(client, Path("/home/x"), is_mac=False)
        )


def test_folders_of_settings_differ_by_system() -> None:
    desktop = CLIENTS[0]
    assert [str(next(client_files(desktop, Path("/h"), is_mac=is_mac))) for is_mac in (False, True)] == [
        "/h/.config/Claude/claude_desktop_config.json",
        "/h/Library/Application Support/Claude/claude_desktop_config.json",
    ]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("claude-desktop", "claude_desktop_config.json"),
        ("cline", "cline_mcp_settings.json"),
        ("cursor", ".cursor/mcp.json"),
        ("zed", "~/.config/zed/settings.json"),
        ("opencode", "~/.config/opencode/opencode.json"),
    ],
)
def test_people_are_told_where_the_configuration_is(name: str, file: str) -> None:
    (client,) = (client for client in CLIENTS if client.name == name)
    assert client.shown_file == file
