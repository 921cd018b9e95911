"""The `sandbox` of a server in the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.apis.table_reader import Table
from portbook.sandbox.declared_sandbox import DeclaredSandbox, read_sandbox

FOLDER = Path("/srv/portbook")


def complain(path: tuple[str | int, ...], problem: str) -> Exception:
    return ValueError(f"{'.'.join(map(str, path))} {problem}")


def read(given: Any) -> DeclaredSandbox:
    return read_sandbox(Table(given, ("sandbox",), complain), FOLDER)


def test_what_is_not_named_is_not_granted() -> None:
    assert read({}) == DeclaredSandbox(read=(), write=(), connect=(), memory_mb=None, processes=None)


def test_paths_start_in_the_folder_of_the_settings_or_at_home() -> None:
    found = read({"read": ["./data", "/opt/x", "~/books"], "write": ["."]})
    assert found.read == (FOLDER / "data", Path("/opt/x"), Path.home() / "books")
    assert found.write == (FOLDER,)


def test_ports_are_named_or_any() -> None:
    assert read({"connect": [443, 5432]}).connect == (443, 5432)
    assert read({"connect": "any"}).connect is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"reads": []}, "sandbox.reads is not a valid key; did you mean read?"),
        ({"read": "data"}, 'sandbox.read must be a list of strings, such as ["a", "b"]'),
        ({"connect": [0]}, 'sandbox.connect must be a list of ports such as [443], or "any"'),
        ({"connect": ["443"]}, 'sandbox.connect must be a list of ports such as [443], or "any"'),
        ({"connect": [True]}, 'sandbox.connect must be a list of ports such as [443], or "any"'),
        ({"connect": "all"}, 'sandbox.connect must be a list of ports such as [443], or "any"'),
        ({"memory_mb": 1}, "sandbox.memory_mb must be a whole number from 16 to 1048576"),
        ({"processes": 0}, "sandbox.processes must be a whole number from 1 to 100000"),
        ([], "sandbox must be a table"),
    ],
)
def test_a_mistake_is_told_with_its_place(given: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=r"sandbox") as raised:
        read(given)
    assert str(raised.value) == problem
