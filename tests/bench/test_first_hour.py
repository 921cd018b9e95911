"""What a new user waits for can be measured: the steps that need no network, done once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.first_hour import approval, document_to_call, measured


@pytest.mark.parametrize("do", [document_to_call, approval])
def test_a_step_does_what_a_new_user_does(do: Callable[[Path], None]) -> None:
    wait = measured("x", do)
    assert wait.cpu_seconds > 0


def test_a_step_that_fails_is_not_measured(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "x").touch()
        raise AssertionError

    with pytest.raises(AssertionError):
        measured("x", fail)
