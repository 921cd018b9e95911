"""Toolsets from files and modules: what is found in them, and what is said where they cannot be had."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.tools.spec import BadTool
from portbook.tools.toolset_loader import load_toolsets

TOOLSET = """
from portbook import Toolset

toolset = Toolset("sample")

@toolset.tool
def echo(text: str) -> str:
    return text
"""


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


def write(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    return str(path)


def names(source: str) -> list[list[str]]:
    return [[spec.name for spec in toolset.specs()] for toolset in load_toolsets(source)]


def complaint(source: str) -> str:
    with pytest.raises(BadTool) as raised:
        load_toolsets(source)
    return str(raised.value)


def test_a_file_is_run_and_its_toolset_found(tmp_path: Path) -> None:
    assert names(write(tmp_path, "tools.py", TOOLSET)) == [["echo"]]


def test_a_file_may_be_named_relative_to_where_portbook_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "sub/tools.py", TOOLSET)
    monkeypatch.chdir(tmp_path)
    assert names("sub/tools.py") == [["echo"]]


def test_a_module_is_imported_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, "package_of_tools/__init__.py", "")
    write(tmp_path, "package_of_tools/inner.py", TOOLSET)
    sys.path.insert(0, str(tmp_path))
    assert names("package_of_tools.inner") == [["echo"]]


def test_every_toolset_of_a_file_is_found_once(tmp_path: Path) -> None:
    text = (
        TOOLSET
        + "\nalias = toolset\nother = Toolset('other')\n\n@other.tool\ndef second() -> int:\n    return 2\n"
    )
    assert names(write(tmp_path, "tools.py", text)) == [["echo"], ["second"]]


def test_a_toolset_that_a_file_imports_counts_as_its_own(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere_of_tools.py", TOOLSET)
    assert names(write(tmp_path, "tools.py", "from elsewhere_of_tools import toolset")) == [["echo"]]


def test_a_file_may_import_what_stands_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "sibling_of_tools.py", "GREETING = 'hello'")
    source = write(
        tmp_path, "tools.py", TOOLSET + "\nimport sibling_of_tools\ntoolset.label = sibling_of_tools.GREETING"
    )
    (toolset,) = load_toolsets(source)
    assert toolset.label == "hello"


def test_type_hints_may_name_what_stands_further_down_in_the_file(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        "tools.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass
        from portbook import Toolset

        toolset = Toolset("orders")

        @toolset.tool
        def get(order: Order) -> Item:
            return order.item

        @dataclass
        class Order:
            item: Item

        @dataclass
        class Item:
            sku: str
        """,
    )
    (toolset,) = load_toolsets(source)
    (spec,) = toolset.specs()
    assert spec.function({"order": {"item": {"sku": "a"}}}) == {"sku": "a"}


def test_files_of_one_name_in_two_folders_keep_their_own_types(tmp_path: Path) -> None:
    text = """
    from __future__ import annotations
    from dataclasses import dataclass
    from portbook import Toolset

    toolset = Toolset("orders")

    @dataclass
    class Item:
        {field}: int

    @dataclass
    class Order:
        item: Item

    @toolset.tool
    def get(order: Order) -> int:
        return order.item.{field}
    """
    sources = [write(tmp_path, f"{field}/tools.py", text.format(field=field)) for field in ("one", "two")]
    loaded = [load_toolsets(source) for source in sources]
    schemas: list[Any] = [toolset.specs()[0].input_schema for (toolset,) in loaded]
    assert [list(schema["$defs"]["Item"]["properties"]) for schema in schemas] == [["one"], ["two"]]


IN_A_FRESH_PROCESS = """
import sys
from portbook.tools.toolset_loader import load_toolsets
(toolset,) = load_toolsets(sys.argv[1])
print(len(toolset.specs()), toolset.label)
"""


def fresh_process(source: str) -> tuple[str, str]:
    """Load a file where nothing has been imported yet; what it says on both streams."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", IN_A_FRESH_PROCESS, source], capture_output=True, timeout=60, text=True
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("name", ["json", "inspect", "zoneinfo", "ipaddress"])
def test_a_file_named_like_a_module_of_python_hides_none(name: str, tmp_path: Path) -> None:
    assert fresh_process(write(tmp_path, f"{name}.py", TOOLSET)) == ("1 sample\n", "")


def test_a_file_beside_it_comes_before_an_installed_package_of_its_name(tmp_path: Path) -> None:
    write(tmp_path, "click.py", "LABEL = 'beside'")
    source = write(tmp_path, "tools.py", TOOLSET + "\nimport click\ntoolset.label = click.LABEL\n")
    assert fresh_process(source) == ("1 beside\n", "")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    said = f"{tmp_path / 'no.py'}: no such file; create it, or correct the path"
    assert complaint(str(tmp_path / "no.py")) == said


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "tools.py").mkdir()
    assert complaint(str(tmp_path / "tools.py")).startswith(
        f"{tmp_path / 'tools.py'}: is a folder; name a file in it"
    )


def test_a_folder_named_like_a_module_and_a_toolset_named_in_its_file_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # No test has a module of this name: files that were loaded before let their neighbours be imported.
    (tmp_path / "folder_alone").mkdir()
    assert complaint("folder_alone") == "folder_alone: is a folder; name a file in it"
    said = "tools.py:toolset: name the file alone, tools.py; every toolset in it is served"
    assert complaint("tools.py:toolset") == said
    assert complaint("") == "a toolset has an empty name; name a file that ends in .py, or a module"


def test_a_folder_does_not_hide_a_module_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "path", "behind_a_folder.py", TOOLSET)
    (tmp_path / "here" / "behind_a_folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(tmp_path / "path")
    assert names("behind_a_folder") == [["echo"]]
    said = "sub/tools.py:toolset: name the file alone, sub/tools.py; every toolset in it is served"
    assert complaint("sub/tools.py:toolset") == said


def test_what_is_no_regular_file_or_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo, link = tmp_path / "fifo.py", tmp_path / "link.py"
    os.mkfifo(fifo)
    link.symlink_to(link)
    for path in (fifo, link):
        assert complaint(str(path)) == f"{path}: not a regular file; name one"
    source = write(tmp_path, "tools.py", TOOLSET)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert complaint(source) == f"{source}: cannot be read; correct its rights"


@pytest.mark.parametrize("name", ["no_such_module", "no_such_package.module", "json.no_such_module"])
def test_a_missing_module_is_named_without_lines_of_the_import_machinery(name: str) -> None:
    said = complaint(name)
    assert said.startswith(f"{name}: cannot be imported: ")
    assert "importlib" not in said


def test_a_file_without_a_toolset_says_how_to_make_one(tmp_path: Path) -> None:
    source = write(tmp_path, "tools.py", "from portbook import Toolset\n")
    assert complaint(source) == (
        f'{source}:1:1: no toolset in it; make one with toolset = Toolset("name") and @toolset.tool'
    )


def test_a_module_without_a_toolset_says_so_too() -> None:
    assert complaint("json").startswith("json: no toolset in it; ")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        pytest.param("x = 1\ndef f(:\n", "2:7", "invalid syntax", id="syntax"),
        pytest.param("x = 1\n\ny = (\n", "3:5", "'(' was never closed", id="a bracket"),
        pytest.param("def f():\nx = 1\n", "2:1", "expected an indented block", id="indentation"),
        pytest.param(b"x = 1\ny = '\xe9'\n", "2:", "'utf-8' codec can't decode", id="not UTF-8"),
    ],
)
def test_a_syntax_error_is_told_with_its_line(
    text: str | bytes, line: str, said: str, tmp_path: Path
) -> None:
    source = write(tmp_path, "tools.py", text)
    found = complaint(source)
    assert found.startswith(f"{source}:{line}")
    assert ": not valid Python: " in found
    assert said in found


def test_a_syntax_error_of_a_file_beside_it_names_that_file(tmp_path: Path) -> None:
    broken = write(tmp_path, "broken_sibling.py", "x = 1\ny = (\n")
    source = write(tmp_path, "tools.py", "import broken_sibling\n" + TOOLSET)
    assert complaint(source) == (
        f"{broken}:2:5: not valid Python: '(' was never closed; correct this line, or the one before it"
    )


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        pytest.param(
            "x = 1\n\n1 / 0\n",
            "3:1",
            "cannot be imported: ZeroDivisionError: division by zero",
            id="an exception",
        ),
        pytest.param(
            "import sys\nsys.exit(3)\n",
            "2:1",
            "cannot be imported: SystemExit: 3; put what ends",
            id="sys.exit",
        ),
        pytest.param(
            "class Odd(Exception):\n    def __str__(self): return 1 / 0\nraise Odd\n",
            "3:1",
            "cannot be imported: Odd: (its text raised ZeroDivisionError); correct this line",
            id="an exception without a text",
        ),
        pytest.param(
            "import no_such_module\n",
            "1:1",
            "cannot be imported: ModuleNotFoundError: No module named",
            id="a missing module",
        ),
        pytest.param(
            "from portbook import Toolset\nt = Toolset('t')\n@t.tool\ndef größe(): pass\n",
            "3:2",
            "tool name 'größe': use 1 to 128",
            id="a name that no tool can have",
        ),
    ],
)
def test_a_file_that_raises_is_told_with_the_line_of_its_own(
    text: str, line: str, said: str, tmp_path: Path
) -> None:
    source = write(tmp_path, "tools.py", text)
    assert complaint(source).startswith(f"{source}:{line}: {said}")


def test_an_exception_of_a_file_beside_it_names_that_file(tmp_path: Path) -> None:
    raising = write(tmp_path, "raising_sibling.py", "x = 1\nraise KeyError('k')\n")
    source = write(tmp_path, "tools.py", "import raising_sibling\n")
    assert complaint(source).startswith(
        f"{raising}:2:1: cannot be imported: KeyError: 'k'; correct this line"
    )


def test_a_module_that_raises_is_told_with_its_line(tmp_path: Path) -> None:
    raising = write(tmp_path, "raising_module.py", "x = 1\nraise KeyError('k')\n")
    sys.path.insert(0, str(tmp_path))
    assert complaint("raising_module").startswith(f"{raising}:2:1: cannot be imported: KeyError: 'k'")


def test_a_file_that_failed_leaves_no_module_behind_and_can_be_mended(tmp_path: Path) -> None:
    before = set(sys.modules)
    source = write(tmp_path, "tools.py", "1 / 0")
    complaint(source)
    assert set(sys.modules) - before == set()
    write(tmp_path, "tools.py", TOOLSET)
    assert names(source) == [["echo"]]


def test_an_interrupt_is_nobodys_mistake(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        load_toolsets(write(tmp_path, "tools.py", "raise KeyboardInterrupt"))


@pytest.mark.parametrize("source", [".", "..a", "a/b", "./tools", "tools/", "/tools/mine"])
def test_a_path_that_is_no_python_file_is_not_taken_for_a_module(source: str) -> None:
    assert complaint(source) == f"{source}: not a toolset; name a file that ends in .py, or a module"


def test_a_file_named_without_its_ending_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "not_on_the_path.py", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    assert complaint("not_on_the_path").endswith("did you mean not_on_the_path.py?")
