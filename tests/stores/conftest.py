from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.sqlite_store import Store
from portbook.testing.fixed_time import FixedClock
from support.approval_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "portbook.db")
    yield made
    made.close()


@pytest.fixture(params=["file", "memory", "postgres"])
def approvals(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApprovalStore]:
    url = request.getfixturevalue("postgres_schema") if request.param == "postgres" else None
    world = World(tmp_path / "portbook.db" if request.param == "file" else Path(":memory:"), url)
    yield world.approvals()
    world.close()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "portbook.db")
    yield made
    made.close()
