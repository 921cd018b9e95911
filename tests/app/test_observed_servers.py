"""What commands that list tools say of MCP servers: a sentence for each that is not approved."""

from __future__ import annotations

from pathlib import Path

from support.mcp_peer import small_server
from support.portbook_process import run

SERVER = f"[mcp.small]\n{small_server()}\n"


def test_a_server_of_which_nothing_is_approved_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(SERVER)
    warned = run("tools", cwd=tmp_path).err
    [line] = [line for line in warned.splitlines() if "mcp.small" in line]
    assert "definitions are not approved yet; run `portbook pin small`" in line


def test_what_is_pinned_is_not_warned_of(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(SERVER)
    assert run("pin", cwd=tmp_path).code == 0
    assert "mcp.small" not in run("tools", cwd=tmp_path).err


def test_a_server_that_cannot_start_says_which_program(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[mcp.gone]\ncommand = ["no-such-program"]\n')
    assert "no-such-program cannot be started: No such file" in run("tools", cwd=tmp_path).err
