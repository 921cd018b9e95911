"""Begins a run with the files of tests that take longest, so that no process is left with one at its end."""

from __future__ import annotations

from typing import Final

import pytest

__all__ = ["LONGEST", "begin_with_longest"]

# What `scripts/test --processor-times` prints at the top; by and large is enough.
LONGEST: Final = ("bench/test_instructions.py",)


def begin_with_longest(items: list[pytest.Item]) -> None:
    """Bring the tests of those files to the front; all others stay in their order."""
    places = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.as_posix().rpartition("/tests/")[2], len(places)))
