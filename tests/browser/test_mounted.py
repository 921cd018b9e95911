"""The console of an application that mounts Portbook below a path of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from support.browser import visit
from support.console_world import OPERATOR
from support.portbook_process import child, environment

APPLICATION = """
from portbook import MountedApp, Toolset

toolset = Toolset("mounted")

@toolset.tool(effect="read")
def echo(text: str) -> str:
    return text

portbook = MountedApp(toolset, is_exposed=False)

async def application(scope, receive, send):
    await portbook({**scope, "root_path": "/ops"}, receive, send)
"""


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "mounting.py").write_text(APPLICATION)
    command = [sys.executable, "-m", "uvicorn", "mounting:application", "--port", "0"]
    env = environment(PORTBOOK_OPERATOR_KEY=OPERATOR)
    with child(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        said = b""
        while not (found := re.search(rb"running on (http://[\d.:]+)", said)):
            line = process.stderr.readline()
            assert line, said.decode()
            said += line
        yield found[1].decode()


def test_a_mounted_console_asks_below_its_own_path(browser: Browser, origin: str) -> None:
    with visit(browser, origin) as visited:
        page = visited.open("ops/")
        visited.give_key(OPERATOR)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        visited.go("#/tools/echo")
        page.get_by_label("text").fill("mounted")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".answer.good")).to_contain_text("mounted")
        page.goto(f"{origin}/ops/approvals")
        expect(page).to_have_url(f"{origin}/ops/#/waiting")
        assert [each for each in visited.addresses if not each.startswith(f"{origin}/ops/")] == []
