"""The pytest plugin: fixtures for tests of tools. It is loaded in every run, and imports next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from portbook.testing.client import TestClient

__all__ = ["portbook_client"]


@pytest.fixture
def portbook_client() -> Iterator[type[TestClient]]:
    """Return `portbook.testing.TestClient`; clients made of it are closed when the test ends."""
    from contextlib import ExitStack

    from portbook.testing.client import TestClient

    with ExitStack() as closing:

        class ClosingClient(TestClient):
            """A client that is closed with its test."""

            def __init__(self, *toolsets: Any, **given: Any) -> None:
                super().__init__(*toolsets, **given)
                closing.callback(self.close)

        yield ClosingClient
