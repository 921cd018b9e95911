"""The pytest plugin: it costs nothing when unused, and its clients are closed with their test."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from portbook.testing import TestClient
from support.portbook_process import ROOT, environment
from support.shop_toolset import toolset

EMPTY = """
import json, sys

def test_nothing():
    print("LOADED", json.dumps(sorted(name for name in sys.modules if name.startswith("portbook"))))
"""

USING = """
import pytest
from portbook import Toolset
from portbook.testing import TestClient

toolset = Toolset("t")
made = []

@toolset.tool(effect="read")
def greet(name: str) -> str:
    return f"Hello, {name}!"

def test_it(portbook_client: type[TestClient]) -> None:
    client = portbook_client(toolset)
    made.append(client)
    assert isinstance(client, TestClient)
    assert client.call("greet", name="Ada").value == "Hello, Ada!"

def test_it_is_closed_then() -> None:
    with pytest.raises(RuntimeError, match="client is closed"):
        made[0].call("greet", name="Ada")
"""


def pytest_on(code: str, folder: Path) -> str:
    """Run pytest as a user does, with the plugins that the entry points name, and warnings as errors."""
    (folder / "test_it.py").write_text(code)
    without = ("-p", "no:cacheprovider", "-p", "no:schemathesis")  # the latter loads for seconds
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-W", "error", *without, "test_it.py"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_that_uses_no_fixture_imports_next_to_nothing(tmp_path: Path) -> None:
    [line] = [line for line in pytest_on(EMPTY, tmp_path).splitlines() if line.startswith("LOADED")]
    assert json.loads(line.removeprefix("LOADED")) == [
        "portbook",
        "portbook.testing",
        "portbook.testing.plugin",
        "portbook.version",
    ]


def test_clients_of_the_fixture_are_closed_when_their_test_ends(tmp_path: Path) -> None:
    assert "2 passed" in pytest_on(USING, tmp_path)


def test_the_fixture_is_here_in_this_run(portbook_client: type[TestClient]) -> None:
    assert portbook_client(toolset).call("stock").value == 7


def test_pytest_is_no_runtime_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert not [each for each in project["dependencies"] if each.startswith("pytest")]
    assert project["entry-points"]["pytest11"] == {"portbook": "portbook.testing.plugin"}
