"""Records shipped by a server to receivers that are away, come back, or hang."""

from __future__ import annotations

import io
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from support.portbook_process import HttpServer, environment, http_server, invoke
from support.record_receivers import (
    PATIENCE_S,
    Received,
    collector,
    reserved_port,
    silent_receiver,
    syslog_datagrams,
    syslog_stream,
)
from support.scripted_api import Certificates

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


@contextmanager
def shipping(
    folder: Path,
    kind: str,
    address: str,
    more: str = "",
    stderr: io.BytesIO | None = None,
    **variables: str,
) -> Iterator[HttpServer]:
    """A server that ships to this address, with some `more` settings of [audit]."""
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS.format(kind=kind, address=address) + more)
    with http_server(cwd=folder, tools=(), stderr=stderr, env=environment(**variables)) as server:
        yield server


@contextmanager
def started(folder: Path, kind: str, port: int, stderr: io.BytesIO | None = None) -> Iterator[HttpServer]:
    """A server that ships to a receiver at this port."""
    with shipping(folder, kind, RECEIVERS[kind][0].format(port=port), stderr=stderr) as server:
        yield server


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


@pytest.mark.covers("021.ship.syslog")
@pytest.mark.parametrize("transport", ["tcp", "tls", "udp", "unix stream", "unix datagrams"])
def test_a_server_ships_its_records_over_every_transport_of_syslog(
    tmp_path: Path, certificates: Certificates, transport: str
) -> None:
    opens: dict[str, Callable[[], AbstractContextManager[tuple[str, Received]]]] = {
        "tcp": syslog_stream,
        "tls": lambda: syslog_stream(context=certificates.server),
        "udp": syslog_datagrams,
        "unix stream": lambda: syslog_stream(path=tmp_path / "log"),
        "unix datagrams": lambda: syslog_datagrams(tmp_path / "log"),
    }
    with opens[transport]() as (address, received):
        trusted = f'ship_ca = "{certificates.ca_file}"\n' if transport == "tls" else ""
        with shipping(tmp_path, "syslog", address, trusted) as server:
            call(server, range(3))
            # Each with its number and hash, which the receiver compares.
            assert received.wait_for(3) == written(tmp_path, "execution")
            assert received.wait_for(3, "intent") == written(tmp_path, "intent")


@pytest.mark.covers("021.ship.otlp")
def test_a_server_ships_its_records_to_a_collector_with_the_authorization_of_a_variable(
    tmp_path: Path,
) -> None:
    named = 'ship_authorization = "COLLECTOR_TOKEN"\n'
    with collector() as (url, received):
        with shipping(tmp_path, "otlp", url, named, COLLECTOR_TOKEN="Bearer abc-4711") as server:
            call(server, range(3))
            assert received.wait_for(3) == written(tmp_path, "execution")
            assert received.wait_for(3, "intent") == written(tmp_path, "intent")
        assert {sent["authorization"] for sent in received.headers} == {"Bearer abc-4711"}
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"abc-4711" not in kept


@pytest.mark.covers("021.ship.away")
@pytest.mark.parametrize("kind", RECEIVERS)
def test_a_receiver_that_was_away_gets_every_record_as_it_is_on_disk(tmp_path: Path, kind: str) -> None:
    said = io.BytesIO()
    with reserved_port() as port, started(tmp_path, kind, port, said) as server:
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
    with reserved_port() as port:
        with silent_receiver(port), started(tmp_path, kind, port) as server:
            call(server, range(5))
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(PATIENCE_S)
        with RECEIVERS[kind][1](port) as (_, received), started(tmp_path, kind, port) as server:
            call(server, range(5, 6))
            # Syslog has no acknowledgements: what a machine took for a program that hangs counts as arrived.
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
