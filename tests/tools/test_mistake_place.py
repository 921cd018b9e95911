"""Where an author's mistake is."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.tools.mistake_place import declared_at, place_of_error, shown_file


def test_a_function_is_placed_at_its_first_line_and_its_indentation() -> None:
    def inner() -> None: ...

    line = inner.__code__.co_firstlineno
    assert declared_at(inner) == f"{shown_file(__file__)}:{line}:5: function inner"
    assert declared_at(len) == "function len"


def test_an_error_is_placed_at_the_last_line_of_the_author() -> None:
    try:
        _ = int("x")
    except ValueError as error:
        found = place_of_error(error, ())
    assert found is not None
    assert found.startswith(f"{shown_file(__file__)}:")
    assert found.endswith(":13")
    assert place_of_error(error_of_nobody(), ()) is None


def error_of_nobody() -> Exception:
    return ValueError("never raised")


def test_a_file_below_the_current_folder_is_shown_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_file(f"{tmp_path}/sub/tools.py") == "sub/tools.py"
    assert shown_file("/elsewhere/tools.py") == "/elsewhere/tools.py"
