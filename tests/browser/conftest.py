from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from portbook.stores.caller_keys import digest_of_key
from support import leftover_processes
from support.browser import PATIENCE_MS, Visit, chromium, program, visit
from support.console_world import ADA, OPERATOR, SETTINGS, ConsoleServer, served

# On a machine that is busy with other tests, a page takes its time.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="package", autouse=True)
def _nothing_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail if a process is left behind: files share a browser and servers, which end with the last."""
    yield
    leftover_processes.require_none(request.node.nodeid)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser; each test has a page with a fresh memory."""
    with chromium(program()) as running:
        yield running


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """A server that calls need no key for, with an operator's key."""
    folder = tmp_path_factory.mktemp("console")
    with served(folder, SETTINGS, {"PORTBOOK_OPERATOR_KEY": OPERATOR}) as running:
        yield running


@pytest.fixture(scope="package")
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
