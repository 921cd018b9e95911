"""Ways to serve one folder over HTTP: by one process, by workers, and by nodes behind a load balancer.

What a caller sees must not depend on which it is. `DEPLOYMENTS` has a row for each.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import pytest

from support.portbook_process import HttpServer, http_server
from support.postgres_server import new_schema
from support.round_robin_proxy import round_robin

COUNT = 3


@contextlib.contextmanager
def _one_process(folder: Path) -> Iterator[HttpServer]:
    with http_server("--log-dir", "runs/http", cwd=folder, tools=()) as server:
        yield server


@contextlib.contextmanager
def _workers(folder: Path) -> Iterator[HttpServer]:
    options = ("--workers", str(COUNT), "--log-dir", "runs/http")
    with http_server(*options, cwd=folder, tools=()) as server:
        yield server
        records = folder / "runs" / "http" / "mcp_server" / "execution"
        assert _writers(records), "nothing was asked of the workers"
        with ExitStack() as kept:
            for _ in range(50):
                if _writers(records) > 1:
                    return
                # Chance gave all to one of them. A connection that stays open makes it likely that the next
                # goes to another.
                address = server.url.removeprefix("http://")
                client = kept.enter_context(contextlib.closing(HTTPConnection(address, timeout=30)))
                body = json.dumps({"tool_id": "look", "session_id": "s", "args": {}})
                client.request("POST", "/execute", body, {"content-type": "application/json"})
                client.getresponse().read()
                time.sleep(0.1)
            pytest.fail("one worker answers for all")


def _writers(folder: Path) -> int:
    """How many processes have written records."""
    return sum(path.stat().st_size > 0 for path in folder.glob("*Z.*.jsonl"))


@contextlib.contextmanager
def _nodes(folder: Path) -> Iterator[HttpServer]:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(http_server("--log-dir", f"runs/node-{at}", cwd=folder, tools=()))
            for at in range(COUNT)
        ]
        url, went = stack.enter_context(round_robin([server.url for server in servers]))
        yield HttpServer(url, servers[0].process)
        assert went, "nothing was asked of the nodes"
        assert set(went) == set(range(min(COUNT, len(went))))


class Deployment(NamedTuple):
    """How a folder is served, and whether its store is a database."""

    serve: Callable[[Path], AbstractContextManager[HttpServer]]
    is_database: bool = False


ONE_PROCESS = "SQLite, one process"
DEPLOYMENTS = {
    ONE_PROCESS: Deployment(_one_process),
    f"SQLite, {COUNT} workers": Deployment(_workers),
    f"PostgreSQL, {COUNT} nodes": Deployment(_nodes, is_database=True),
}


@contextlib.contextmanager
def store_of(deployment: Deployment, request: pytest.FixtureRequest) -> Iterator[str]:
    """The table of settings for the store of a deployment: an empty one."""
    if not deployment.is_database:
        yield '[store]\npath = "portbook.db"\n'
        return
    with new_schema(request.getfixturevalue("postgres_server")) as url:
        yield f'[store]\nurl = "{url}"\n'
