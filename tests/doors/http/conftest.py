from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.operator_console import Console, operator_console
from support.portbook_process import HttpServer, http_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[HttpServer]:
    with http_server(cwd=folder) as server:
        yield server


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with operator_console(tmp_path_factory.mktemp("console")) as served:
        yield served


TOOLS = '''
from portbook import Toolset

toolset = Toolset("offers")

@toolset.tool(effect="read")
def look() -> str:
    """{{known}} <script>alert(1)</script>"""
    return ""

@toolset.resource("notes://{name}")
def note(name: str) -> str:
    """A note, <b>by</b> its name."""
    return name

@toolset.prompt
def greet(name: str) -> str:
    """A greeting."""
    return name
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "offers.py"
    path.write_text(TOOLS)
    return path
