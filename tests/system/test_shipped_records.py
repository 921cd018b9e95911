"""Records shipped by a server to receivers that are away, come back, or hang."""

from __future__ import annotations

import io
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from support.portbook_process import HttpServer, http_server, invoke
from support.record_receivers import (
    PATIENCE_S,
    Received,
    collector,
    free_port,
    silent_receiver,
    syslog_stream,
)

TOOLS = """
from portbook import Toolset

toolset = Toolset("ledger")

@toolset.tool(effect="write", inline=True)
def enter(number: int) -> int:
    return number
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[audit]
ship = "{kind}"
ship_to = "{address}"
"""

RECEIVERS: dict[str, tuple[str, Callable[[int], AbstractContextManager[tuple[str, Received]]]]] = {
    "otlp": ("http://127.0.0.1:{port}/v1/logs", collector),
    "syslog": ("tcp://127.0.0.1:{port}", syslog_stream),
}


def settle(folder: Path, kind: str, port: int) -> None:
    address = RECEIVERS[kind][0].format(port=port)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS.format(kind=kind, address=address))


def call(server: HttpServer, numbers: range) -> None:
    for number in numbers:
        assert server.rpc(invoke("enter", {"number": number})).json["result"] == number


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def written(folder: Path, stream: str) -> list[bytes]:
    """The records on disk, oldest file first."""
    files = sorted(
        path for path in (folder / "runs/mcp_server" / stream).glob("*.jsonl") if not path.is_symlink()
    )
    return [line for path in files for line in path.read_bytes().splitlines()]


@pytest.mark.covers("021.ship.away")
@pytest.mark.parametrize("kind", RECEIVERS)
def test_a_receiver_that_was_away_gets_every_record_as_it_is_on_disk(tmp_path: Path, kind: str) -> None:
    port, said = free_port(), io.BytesIO()
    settle(tmp_path, kind, port)
    with http_server(cwd=tmp_path, tools=(), stderr=said) as server:
        call(server, range(5))
        until(lambda: server.request("/health").json["checks"]["shipping"]["status"] == "failed")
        health = server.request("/health")
        assert health.status == 200  # the records are in their files
        assert health.json["checks"]["shipping"]["problem"].startswith("records are not shipped: ")
        with RECEIVERS[kind][1](port) as (_, received):
            received.wait_for(5)
            call(server, range(5, 8))
            server.process.send_signal(signal.SIGTERM)  # the last ones are shipped before the end
            server.process.wait(PATIENCE_S)
            assert received.wait_for(8) == written(tmp_path, "execution")
            assert received.wait_for(8, "intent") == written(tmp_path, "intent")
    assert said.getvalue().count(b"records are not shipped") == 1


@pytest.mark.covers("021.ship.hangs")
@pytest.mark.parametrize("kind", RECEIVERS)
def test_a_receiver_that_hangs_holds_neither_calls_nor_the_end_and_the_next_server_ships(
    tmp_path: Path, kind: str
) -> None:
    with silent_receiver() as port:
        settle(tmp_path, kind, port)
        with http_server(cwd=tmp_path, tools=()) as server:
            call(server, range(5))
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(PATIENCE_S)
    with RECEIVERS[kind][1](port) as (_, received), http_server(cwd=tmp_path, tools=()) as server:
        call(server, range(5, 6))
        # Syslog has no acknowledgements: what a machine has taken for a program that hangs counts as arrived.
        wanted = {*written(tmp_path, "execution")[0 if kind == "otlp" else 5 :]}
        until(lambda: wanted <= {line for *_, line in received.lines})


@pytest.mark.covers("021.ship.postgresql")
def test_nodes_ship_every_record_into_their_database_once(tmp_path: Path, postgres_schema: str) -> None:
    import psycopg

    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tools.py").write_text(TOOLS)
        settings = f'[python]\ntoolsets = ["tools.py"]\n[store]\nurl = "{postgres_schema}"\n'
        (tmp_path / name / "portbook.toml").write_text(f'{settings}[audit]\nship = "postgresql"\n')
        with http_server(cwd=tmp_path / name, tools=()) as server:
            call(server, range(3))
    with psycopg.connect(postgres_schema) as connection:
        for stream in ("execution", "intent"):
            found = connection.execute(
                "SELECT line FROM audit_record WHERE stream = %s", (stream,), binary=False
            ).fetchall()
            wanted = [line for name in ("first", "second") for line in written(tmp_path / name, stream)]
            assert sorted(row[0].encode() for row in found) == sorted(wanted)
            assert len(wanted) == 6
