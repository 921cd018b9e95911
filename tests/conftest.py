from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["support.certificates"]

GOLDEN = Path(__file__).resolve().parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "covers(requirement): the requirement of requirements.toml this test shows"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, bytes], None]:
    """Compare bytes with a golden file, or write it anew."""

    def compare(name: str, found: bytes) -> None:
        path = GOLDEN / name
        if request.config.getoption("--regenerate-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found)
        assert found == path.read_bytes()

    return compare
