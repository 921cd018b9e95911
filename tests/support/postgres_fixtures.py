"""Fixtures with a real PostgreSQL: an address of empty tables, or of a database of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.postgres_server import new_database, new_schema, shared_server


@pytest.fixture(scope="session")
def postgres_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[str]:
    """The address of a server that all processes of this run share."""
    queue: Path | None = request.config.getoption("--queue")
    base = tmp_path_factory.getbasetemp()
    with shared_server((queue or (base if worker_id == "master" else base.parent)) / "postgres") as url:
        yield url


@pytest.fixture
def postgres_schema(postgres_server: str) -> Iterator[str]:
    """The address of empty tables."""
    with new_schema(postgres_server) as url:
        yield url


@pytest.fixture
def postgres_database(postgres_server: str) -> Iterator[str]:
    """The address of an empty database."""
    with new_database(postgres_server) as url:
        yield url
