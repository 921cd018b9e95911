"""`portbook upstreams`, where no process serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.mcp_peer import small_server, table
from support.portbook_process import run


def test_servers_that_no_process_runs_are_listed_as_such(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(table("b", small_server()) + table("a", 'url = "http://x/mcp"'))
    done = run("upstreams", "--json", cwd=tmp_path)
    assert json.loads(done.out)["upstreams"] == [
        {"name": "a", "transport": "http", "state": "not running"},
        {"name": "b", "transport": "stdio", "state": "not running"},
    ]
    assert not (tmp_path / "portbook.db").exists()


def test_without_servers_the_list_is_empty(tmp_path: Path) -> None:
    assert json.loads(run("upstreams", cwd=tmp_path).out) == {"upstreams": []}


def test_only_a_server_that_exists_can_be_restarted(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(table("small", small_server()))
    done = run("upstreams", "restart", "smal", cwd=tmp_path)
    assert done.code == 2
    assert "did you mean small?" in done.err


def test_where_nothing_runs_there_is_nothing_to_restart(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(table("small", small_server()))
    done = run("upstreams", "restart", "small", cwd=tmp_path)
    assert (done.code, done.out) == (1, b"")
    assert "no `portbook serve` runs small now" in done.err
    assert not (tmp_path / "portbook.db").exists()


@pytest.mark.parametrize("verb", [("upstreams", "sandbox", "box"), ("pin", "box")])
@pytest.mark.parametrize(
    ("script", "status"), [("exit 3", "status 3"), ("kill -SEGV $$", "status 139 (SIGSEGV)")]
)
def test_a_server_that_ends_at_once_is_told_with_its_exit_status(
    verb: tuple[str, ...], script: str, status: str, tmp_path: Path
) -> None:
    (tmp_path / "portbook.toml").write_text(f'[mcp.box]\ncommand = ["sh", "-c", "{script}"]\n')
    finished = run(*verb, cwd=tmp_path)
    assert f"its process ended with {status}" in finished.err + finished.out.decode()


@pytest.mark.parametrize("verb", [("check",), ("pin", "box"), ("upstreams",)])
def test_what_no_program_can_be_given_is_a_mistake_in_the_settings(
    verb: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "portbook.toml").write_text('[mcp.box]\ncommand = ["sh", "a\\u0000b"]\n')
    finished = run(*verb, cwd=tmp_path)
    told = finished.err + finished.out.decode()
    assert finished.code != 0
    assert "portbook.toml:2:1" in told
    assert "mcp.box.command has a character that no program can be given" in told
    assert "Traceback" not in told
