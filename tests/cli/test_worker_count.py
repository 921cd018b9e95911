"""How many workers there are, and what several of them cannot serve."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from portbook.cli.worker_count import usable_processors
from support.portbook_process import SAMPLE_TOOLS, run


@pytest.mark.parametrize(
    ("quota", "count"),
    [
        pytest.param("100000 100000", 1, id="one"),
        pytest.param("50000 100000", 1, id="half of one"),
        pytest.param("99999999 100000", None, id="more than there are"),
        pytest.param("max 100000", None, id="no limit"),
        pytest.param("", None, id="nothing"),
        pytest.param("1 0", None, id="no period"),
    ],
)
def test_auto_is_what_the_container_may_use_or_else_what_the_machine_has(
    quota: str, count: int | None, tmp_path: Path
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_processors(tmp_path / "cpu.max") == (count or len(os.sched_getaffinity(0)))
    assert usable_processors(tmp_path / "none") == len(os.sched_getaffinity(0))


SERVE = ("serve", "--http", "--port", "0", "--workers", "2")


@pytest.mark.covers("design.workers.refused")
@pytest.mark.parametrize(
    ("options", "settings", "said"),
    [
        pytest.param(("--reload",), "", "cannot be watched by --reload; set it to 1, or reload", id="reload"),
        pytest.param(("--stdio",), "", "is for HTTP alone; leave out --stdio, or set it to 1", id="stdio"),
        pytest.param(
            (), "[server]\nlegacy_sse = true", "must be 1 with server.legacy_sse, whose clients", id="legacy"
        ),
        pytest.param((), '[store]\npath = ":memory:"', "must be 1 with a store in memory", id="memory"),
    ],
)
def test_what_workers_cannot_serve_together_is_refused(
    options: tuple[str, ...], settings: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "portbook.toml").write_text(settings)
    done = run(*SERVE, *options, str(SAMPLE_TOOLS), cwd=tmp_path)
    assert done.code == 2
    assert done.err.startswith(f"portbook: error: --workers: server.workers {said}")
    assert done.err.count("\n") == 1


def test_check_tells_what_workers_cannot_serve(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text("[server]\nworkers = 2\nlegacy_sse = true\n")
    done = run("check", "--json", cwd=tmp_path)
    assert done.code != 0
    (problem,) = json.loads(done.out)["errors"]
    assert (problem["line"], problem["column"]) == (2, 1)
    assert "server.workers must be 1 with server.legacy_sse" in problem["message"]


@pytest.mark.parametrize("count", ["0", "257", "many", "-1", "2.0", ""])
def test_a_number_of_workers_that_is_none_is_refused(count: str, tmp_path: Path) -> None:
    done = run("serve", "--http", "--workers", count, cwd=tmp_path)
    assert done.code == 2
    assert "server.workers must be auto, or a whole number from 1 to 256" in done.err


def test_workers_are_for_http(tmp_path: Path) -> None:
    done = run("serve", "--stdio", "--workers", "2", cwd=tmp_path)
    assert (done.code, done.err.splitlines()[0]) == (2, "portbook: error: --workers is for HTTP; add --http")


@pytest.mark.covers("design.workers.told-once")
@pytest.mark.parametrize(
    ("settings", "tools", "said"),
    [
        pytest.param("[server]\nprot = 1", "", "portbook.toml:2:1: unknown setting", id="settings"),
        pytest.param('[python]\ntoolsets = ["tools.py"]', "x = (\n", "tools.py:1:5: not valid", id="toolset"),
        pytest.param('[server]\ntls = { cert = "a", key = "b" }', "", "server.tls cannot be used", id="tls"),
    ],
)
def test_what_is_wrong_with_the_settings_is_told_once_and_nothing_serves(
    settings: str, tools: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "portbook.toml").write_text(settings)
    (tmp_path / "tools.py").write_text(tools)
    done = run(*SERVE, cwd=tmp_path)
    assert done.code == 2, done.err
    assert sum("error: " in line for line in done.err.splitlines()) == 1, done.err
    assert said in done.err
    assert "serving" not in done.err
