"""Three servers on one store, asked as fast as they answer: a caller gets what the limit says, no more."""

from __future__ import annotations

import http.client
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from portbook.stores.shared_rates import block_size
from support.portbook_process import http_server, invoke

SERVERS = 3
CONNECTIONS = 3
LIMIT = 60
CALLS = 25
"""Of each connection: together nearly four times the limit."""

SETTINGS = f"""
[python]
toolsets = ["tools.py"]
[policy]
max_calls_per_minute = {LIMIT}
"""

TOOLS = """
import os
from pathlib import Path
from portbook import Toolset

toolset = Toolset("ledger")
LEDGER = os.open(Path(__file__).with_name("ledger"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

@toolset.tool(effect="read", inline=True)
def look() -> None:
    os.write(LEDGER, b".")
"""


def hammer(url: str) -> Counter[str]:
    """How often each answer came over one connection."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    answers: Counter[str] = Counter()
    for _ in range(CALLS):
        connection.request("POST", "/rpc", invoke("look", {}), {"content-type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        answers["passed" if "result" in answer else answer["error"]["data"]["reason"]] += 1
    connection.close()
    return answers


@pytest.mark.covers("021.rates.over-processes")
@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_processes_that_share_a_store_never_let_more_pass_than_the_limit_says(
    tmp_path: Path, mode: str
) -> None:
    hammered(tmp_path, SETTINGS + f'rate = "{mode}"\n', is_exact=mode == "exact")


@pytest.mark.parametrize("mode", ["exact", None])
def test_nodes_of_one_database_count_together_without_being_told(
    tmp_path: Path, postgres_schema: str, mode: str | None
) -> None:
    told = "" if mode is None else f'rate = "{mode}"\n'
    settings = f'{SETTINGS}{told}[store]\nurl = "{postgres_schema}"\n'
    hammered(tmp_path, settings, is_exact=mode == "exact")


def test_workers_count_together_without_being_told(tmp_path: Path) -> None:
    hammered(tmp_path, f"{SETTINGS}[server]\nworkers = {SERVERS}\n", is_exact=False, servers=1)


def hammered(folder: Path, settings: str, *, is_exact: bool, servers: int = SERVERS) -> None:
    """Call as fast as servers answer, and count what passes."""
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(settings)
    with ExitStack() as stack:
        urls = [stack.enter_context(http_server(cwd=folder, tools=())).url for _ in range(servers)]
        began = time.monotonic()
        with ThreadPoolExecutor(SERVERS * CONNECTIONS) as pool:
            connections = (urls * SERVERS * CONNECTIONS)[: SERVERS * CONNECTIONS]
            answers = sum(pool.map(hammer, connections), Counter[str]())
        passed_s = time.monotonic() - began
    assert answers["passed"] == len((folder / "ledger").read_bytes())
    assert answers.keys() == {"passed", "RATE_LIMITED"}
    flown_in = int(passed_s * LIMIT / 60) + 1
    held = 0 if is_exact else SERVERS * block_size(LIMIT)
    assert LIMIT <= answers["passed"] <= LIMIT + flown_in + held
