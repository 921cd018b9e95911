"""The operator's modules, imported anew beside the old ones, and put back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.tools.toolset_loader import SetAsideModules, load_toolsets, modules_below

TOOLS = """
from portbook import Toolset
from deep_words.spoken_word import WORD
toolset = Toolset("x")
def said():
    return WORD
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "deep_words").mkdir()
    (tmp_path / "deep_words" / "__init__.py").touch()
    write(tmp_path, "one")
    (tmp_path / "aside_tools.py").write_text(TOOLS)
    yield tmp_path
    SetAsideModules([tmp_path])


def write(folder: Path, word: str) -> None:
    (folder / "deep_words" / "spoken_word.py").write_text(f"WORD = {word!r}\n")


def names(folder: Path) -> set[str]:
    return {name for name, _, _ in modules_below([folder])}


def test_files_are_imported_anew_at_any_depth_and_the_old_functions_stay_as_they_are(folder: Path) -> None:
    source = str(folder / "aside_tools.py")
    [old] = load_toolsets(source)
    said = sys.modules["portbook_tools_aside_tools"].said
    assert names(folder) == {"portbook_tools_aside_tools", "deep_words", "deep_words.spoken_word"}
    write(folder, "two")
    SetAsideModules([folder])
    assert names(folder) == set()
    [new] = load_toolsets(source)
    assert new is not old
    assert (said(), sys.modules["portbook_tools_aside_tools"].said()) == ("one", "two")


def test_what_is_put_back_is_what_was_there_and_nothing_of_the_new_stays(folder: Path) -> None:
    source = str(folder / "aside_tools.py")
    load_toolsets(source)
    before = {name: sys.modules[name] for name in names(folder)}
    aside = SetAsideModules([folder])
    (folder / "aside_more.py").write_text("")
    (folder / "aside_tools.py").write_text("import aside_more\n" + TOOLS)
    load_toolsets(source)
    aside.put_back([folder])
    assert {name: sys.modules[name] for name in names(folder)} == before


def test_installed_packages_below_the_folder_are_none_of_the_operators(folder: Path) -> None:
    place = folder / ".venv" / "site-packages"
    place.mkdir(parents=True)
    (place / "aside_installed.py").write_text("")
    sys.path.append(str(place))
    __import__("aside_installed")
    try:
        assert "aside_installed" not in names(folder)
    finally:
        del sys.modules["aside_installed"]
