"""Schemathesis against what `/openapi.json` promises: no undocumented status, no 500, every shape kept."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.counts import count, seed
from support.portbook_process import HttpServer, environment, http_server

TOOLS = '''
from typing import Literal
from portbook import Toolset
from pydantic import BaseModel

toolset = Toolset("promises")

class Order(BaseModel):
    id: str
    cents: int
    parts: list["Order"] = []

@toolset.tool(effect="read")
def look_up(id: str, depth: int = 0) -> Order:
    """One order."""
    return Order(id=id, cents=1)

@toolset.tool(effect="write")
def add(order: Order, kind: Literal["new", "old"] = "new") -> list[Order]:
    """Several orders."""
    return [order]

@toolset.tool(effect="write")
def refund(cents: int) -> int:
    """A number."""
    return cents

@toolset.tool(effect="destructive")
def wipe() -> None:
    """Nothing."""
'''

SETTINGS = """
[docs]
enabled = true
[python]
toolsets = ["tools.py"]

[policy]
max_payload_bytes = 4096

[[policy.rules]]
name = "large refunds need a person"
tools = ["refund"]
where = { "/cents" = { minimum = 10000 } }
action = "ask"

[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"
"""


OPERATOR = "key of the operator"


@contextlib.contextmanager
def an_operator(server: HttpServer) -> Iterator[None]:
    """Deny every call that waits for approval: a request may ask to wait for ten minutes."""
    is_over = threading.Event()

    def deny() -> None:
        key = {"authorization": f"Bearer {OPERATOR}", "content_type": "application/json"}
        while not is_over.wait(0.05):
            for pending in server.request("/approvals?state=pending", **key).json["approvals"]:
                path = f"/approvals/{pending['approval_id']}"
                server.request(path, json.dumps({"decision": "deny"}).encode(), **key)

    operator = threading.Thread(target=deny)
    operator.start()
    try:
        yield
    finally:
        is_over.set()
        operator.join()


@pytest.mark.covers("002.rest.openapi")
@pytest.mark.soak("requests by the description")
def test_schemathesis_finds_no_unexpected_status_and_no_broken_promise(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    chance = ("--seed", str(seed())) + (() if seed() else ("--generation-deterministic",))
    env = environment(PORTBOOK_OPERATOR_KEY=OPERATOR)
    with http_server(cwd=tmp_path, tools=(), env=env) as server, an_operator(server):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"),
                *("--max-examples", str(count("requests by the description")), "--no-color", *chance),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert server.request("/livez").status == 200
    tested = [line.strip() for line in done.stdout.splitlines() if "Tested:" in line]
    # Five tools with docs.search, run and described, /execute, /tools, /health, /livez, /readyz.
    assert tested == ["Tested: 15"]
