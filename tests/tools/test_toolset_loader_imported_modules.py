"""A file that is named by its path and imported by a statement is one module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.tools import toolset_loader
from portbook.tools.spec import BadTool
from portbook.tools.toolset import Toolset
from portbook.tools.toolset_loader import ToolsetLoader, load_toolsets

TOOLSET = 'from portbook import Toolset\n\ntoolset = Toolset("sample")\n'


@pytest.fixture(autouse=True)
def own_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports is gone after it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = dict(sys.modules)
    yield
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]
    importlib.invalidate_caches()


def write(folder: Path, name: str, text: str = TOOLSET) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_file_is_one_module_in_either_order(tmp_path: Path) -> None:
    offers = write(tmp_path, "offers_of_both.py")
    again = write(tmp_path, "again.py", "from offers_of_both import toolset\n")
    for sources in ([offers, again], [again, offers]):
        loader = ToolsetLoader()
        assert sum(len(loader.load(source)) for source in sources) == 1


def test_a_named_file_hides_no_built_in_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_toolsets(write(tmp_path, "marshal.py"))
    monkeypatch.delitem(sys.modules, "marshal")
    assert hasattr(importlib.import_module("marshal"), "dumps")


def test_a_file_that_could_not_be_run_is_run_again_when_it_is_imported(tmp_path: Path) -> None:
    with pytest.raises(BadTool, match="ZeroDivisionError"):
        load_toolsets(write(tmp_path, "broken_once.py", "1 / 0"))
    write(tmp_path, "broken_once.py")
    assert isinstance(importlib.import_module("broken_once").toolset, Toolset)


def test_a_module_keeps_its_own_name_when_it_is_imported_under_a_second_one(tmp_path: Path) -> None:
    (toolset,) = load_toolsets(write(tmp_path, "named_twice.py"))
    module = importlib.import_module("named_twice")
    assert module.toolset is toolset
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == "portbook_tools_named_twice"


def test_no_file_of_portbook_or_of_python_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A start has four hundred of them, and a look at each costs a call of the system.
    looked_at: list[str] = []
    look = toolset_loader._identity

    def noted(path: str) -> tuple[int, int] | None:
        looked_at.append(path)
        return look(path)

    monkeypatch.setattr(toolset_loader, "_identity", noted)
    load_toolsets(write(tmp_path, "looked_for.py"))
    assert {
        str(sys.modules[name].__file__) for name in ("portbook", "json", "portbook.tools.spec")
    }.isdisjoint(looked_at)
    assert str(pytest.__file__) in looked_at
