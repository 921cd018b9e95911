from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from portbook.access.callers import digest_of_key
from support import sdks
from support.browser import Visit, chromium, program, visit
from support.console_world import ADA, OPERATOR, SETTINGS, ConsoleServer, served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file; each test has a page with a fresh memory."""
    try:
        found = program()
    except sdks.Unavailable as unavailable:
        if os.environ.get("CI"):
            pytest.fail(str(unavailable))
        pytest.skip(f"no Chromium on this machine, and {unavailable}")
    with chromium(found) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """A server that calls need no key for, with an operator's key."""
    folder = tmp_path_factory.mktemp("console")
    with served(folder, SETTINGS, {"PORTBOOK_OPERATOR_KEY": OPERATOR}) as running:
        yield running


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """A server that calls need a key for, and without an operator's key."""
    keys = f'[keys]\nrequired = true\n[[keys.allow]]\nname = "ada"\nsha256 = "{digest_of_key(ADA)}"\n'
    with served(tmp_path_factory.mktemp("locked"), SETTINGS + keys, {}) as running:
        yield running


@pytest.fixture
def console(browser: Browser, server: ConsoleServer) -> Iterator[Visit]:
    """The console, opened with the operator's key."""
    with visit(browser, server.url) as visited:
        visited.open()
        visited.give_key(OPERATOR)
        yield visited
