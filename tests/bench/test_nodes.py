"""What a call pays for PostgreSQL can be measured: one that needs nothing of it changes nothing there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.nodes import KINDS, Kind, measured_nodes
from support.postgres_server import PostgresServer, own_server


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that no other test changes anything in."""
    with own_server() as started:
        yield started


@pytest.mark.parametrize("kind", KINDS)
def test_only_calls_that_need_the_database_change_something_in_it(
    kind: Kind, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.nodes._IDLE_S", 0.01)
    nodes = 2 if kind == "approved" else 1
    found = measured_nodes(kind, nodes, 300, server.url, server.pid)
    assert (found.kind, found.nodes, found.is_database) == (kind, nodes, True)
    assert 0 < found.busiest_us <= found.cpu_us
    assert found.database_us is not None
    assert found.changes is not None
    # Nodes write now and then by themselves: not for each call.
    assert found.changes < 0.5 if kind == "plain" else found.changes >= 1
