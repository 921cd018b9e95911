"""The descriptors of a watching process: taken once, and not passed on."""

from __future__ import annotations

import os

import pytest

from portbook.cli.inherited_socket import TAKE_OVER, Inherited


def test_they_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TAKE_OVER, "3,4")
    assert Inherited.of_environment() == (3, 4)
    assert TAKE_OVER not in os.environ
    assert Inherited.of_environment() is None
