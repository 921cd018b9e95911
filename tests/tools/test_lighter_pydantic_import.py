"""pydantic, imported lighter: its plugins work where there are some, and `secrets` wherever it is used."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from portbook.tools.lighter_pydantic_import import may_have_plugins

PLUGIN = """
class Plugin:
    def new_schema_validator(self, *given):
        print("asked")
        return None, None, None

plugin = Plugin()
"""

SERVED = """
import sys
from portbook.tools.lighter_pydantic_import import lighten_pydantic
lighten_pydantic()
lighten_pydantic()
import pydantic
class Model(pydantic.BaseModel):
    a: int
finders = [finder for finder in sys.meta_path if "_PydanticFinder" in repr(finder)]
print(Model(a=1), "importlib.metadata" in sys.modules, len(finders))
"""


def installed(folder: Path, entry_points: str | None) -> Path:
    """Return a folder with an installed package."""
    info = folder / "a_package-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-package\nVersion: 1\n")
    if entry_points is not None:
        (info / "entry_points.txt").write_text(entry_points)
    return folder


def case(name: str, *values: object) -> object:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize(
    ("entry_points", "expected"),
    [
        case("no entry points", None, False),
        case("of a command", "[console_scripts]\na = a:main\n", False),
        case("a plugin", "[pydantic]\na = a:plugin\n", True),
        case("a plugin in other words", "[ pydantic ]\na=a:plugin\n", True),
    ],
)
def test_a_plugin_is_known_by_its_entry_point(
    entry_points: str | None, expected: bool, tmp_path: Path
) -> None:
    assert may_have_plugins([str(installed(tmp_path, entry_points))]) is expected


def test_what_cannot_be_read_may_have_a_plugin(tmp_path: Path) -> None:
    assert not may_have_plugins([str(tmp_path), str(tmp_path / "missing")])
    archive = tmp_path / "packages.zip"
    archive.write_bytes(b"")
    assert may_have_plugins([str(archive)])
    (tmp_path / "old.egg").mkdir()
    assert may_have_plugins([str(tmp_path)])


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        case("an egg on the path", "a_package-1-py3.11.egg", "EGG-INFO/entry_points.txt"),
        case("an egg in capitals", "a_package-1.EGG", "egg-info/entry_points.txt"),
        case("metadata in capitals", "packages", "a_package-1.DIST-INFO/entry_points.txt"),
        case("metadata of an egg in capitals", "packages", "a_package.Egg-Info/entry_points.txt"),
    ],
)
def test_whatever_python_takes_for_a_package_is_looked_at(folder: str, file: str, tmp_path: Path) -> None:
    path = tmp_path / folder / file
    path.parent.mkdir(parents=True)
    path.write_text("[pydantic]\na = a:plugin\n")
    found = importlib.metadata.distributions(path=[str(tmp_path / folder)])
    assert [point.group for each in found for point in each.entry_points] == ["pydantic"]
    assert may_have_plugins([str(tmp_path / folder)])


def test_a_finder_with_packages_of_its_own_may_have_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_spec(self, *_: object) -> None: ...
        def find_distributions(self, *_: object) -> list[object]:
            return []

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert may_have_plugins([])


def told(folder: Path, before: str = "", after: str = "") -> str:
    """Return what a process says that makes a model, with the packages of `folder` beside ours."""
    script = f"import sys; sys.path.append({str(folder)!r})\n{before}{SERVED}{after}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_plugin_is_asked(tmp_path: Path) -> None:
    (installed(tmp_path, "[pydantic]\na = a_plugin:plugin\n") / "a_plugin.py").write_text(PLUGIN)
    assert told(tmp_path) == "asked\na=1 True 1\n"


def test_without_a_plugin_nobody_reads_entry_points(tmp_path: Path) -> None:
    assert told(installed(tmp_path, None)) == "a=1 False 1\n"


def test_a_finder_that_alone_has_pydantic_is_asked_next(tmp_path: Path) -> None:
    (installed(tmp_path, "[pydantic]\na = a_plugin:plugin\n") / "a_plugin.py").write_text(PLUGIN)
    # At the first place until ours comes before it, and with nobody behind it who knows of pydantic.
    finder = """
from importlib.machinery import PathFinder
class Alone:
    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, path, target) if name.startswith("pydantic.") else None
class Others:
    def find_spec(self, name, path=None, target=None):
        return None if name.startswith("pydantic.") else PathFinder.find_spec(name, path, target)
    def find_distributions(self, *given):
        return PathFinder.find_distributions(*given)
sys.meta_path[:] = [Alone(), *(Others() if each is PathFinder else each for each in sys.meta_path)]
"""
    assert told(tmp_path, finder) == "asked\na=1 True 1\n"


def test_whatever_else_is_in_pydantics_module_is_there(tmp_path: Path) -> None:
    script = """
from pydantic.plugin import _loader
group = _loader.PYDANTIC_ENTRY_POINT_GROUP
real = sys.modules["pydantic.plugin._loader"]
print(real is not _loader, hasattr(_loader, "no such thing"), hasattr(_loader, "nor this"))
print(_loader.PYDANTIC_ENTRY_POINT_GROUP == group, sys.modules["pydantic.plugin._loader"] is real)
"""
    assert told(installed(tmp_path, None), after=script) == "a=1 False 1\nTrue False False\nTrue True\n"


IMPORTED = """
import sys
from portbook.tools.lighter_pydantic_import import lighten_pydantic
lighten_pydantic()
import pydantic
Model = type("Model", (pydantic.BaseModel,), {"__annotations__": {"a": int}})
"""


def said(script: str, *paths: Path) -> list[str]:
    """Return the words that a process says that has imported pydantic; `paths` come before Python's own."""
    script = f"import sys; sys.path[:0] = {[*map(str, paths)]!r}\n{IMPORTED}{script}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "use",
    [
        case("of pydantic", "print(pydantic.SecretStr('a') == pydantic.SecretStr('a'))"),
        case("an attribute", "import secrets; print(len(secrets.token_hex(4)) == 8)"),
        case("a name", "from secrets import compare_digest; print(compare_digest('a', 'a'))"),
        case("all names", "from secrets import *; print(callable(token_bytes) and callable(choice))"),
        case("run again", "import importlib, secrets; print(importlib.reload(secrets).randbelow(1) == 0)"),
        case("after a name that is not there", "import secrets; print(not hasattr(secrets, 'no_such'))"),
        case("a list of its names", "import secrets; print('token_hex' in dir(secrets))"),
        case(
            "with a default of one's own",
            "import secrets; secrets.DEFAULT_ENTROPY = 64; print(len(secrets.token_bytes()) == 64)",
        ),
        case("as a program", "import runpy; print('token_hex' in runpy.run_module('secrets'))"),
    ],
)
def test_openssl_is_loaded_with_the_first_use_of_secrets(use: str) -> None:
    before, after = "print('_hashlib' in sys.modules)\n", "\nprint('_hashlib' in sys.modules)"
    assert said(before + use + after) == ["False", "True", "True"]


def test_nothing_runs_secrets_that_only_looks_at_modules() -> None:
    look = """
import inspect, os
for module in list(sys.modules.values()):
    getattr(module, "__path__", None), getattr(module, "__wrapped__", None)
found = sys.modules["secrets"]
print(os.path.basename(found.__file__), found.__name__, repr(found.__spec__.name), "_hashlib" in sys.modules)
"""
    assert said(look) == ["secrets.py", "secrets", "'secrets'", "False"]


@pytest.mark.parametrize("first", ["", "secrets.token_hex(); "], ids=["before its first use", "after it"])
def test_secrets_that_were_reloaded_are_run_once_more_and_not_again(first: str) -> None:
    again = """
before = secrets.DEFAULT_ENTROPY = 64
importlib.reload(secrets)
reloaded = secrets.token_hex
print(secrets.DEFAULT_ENTROPY, hasattr(secrets, "no_such"), secrets.token_hex is reloaded)
print(type(secrets.__loader__).__name__, "__getattr__" in vars(secrets))
"""
    found = said(f"import importlib, secrets; {first}{again}")
    assert found == ["32", "False", "True", "SourceFileLoader", "False"]


def test_a_python_without_files_of_its_own_imports_secrets_as_ever() -> None:
    script = "import os; del os.__file__\n" + IMPORTED + "print('_hashlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_finder_that_has_a_module_of_that_name_is_asked(tmp_path: Path) -> None:
    (tmp_path / "found.py").write_text("print('run')\n")
    finder = f"""
import sys
from importlib.util import spec_from_file_location
class Own:
    def find_spec(self, name, path=None, target=None):
        if name == "secrets":
            return spec_from_file_location(name, {str(tmp_path / "found.py")!r})
sys.meta_path.insert(0, Own())
"""
    script = finder + IMPORTED
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("run\n", "")


def test_threads_that_use_secrets_at_once_all_get_what_they_ask_for() -> None:
    race = """
import threading
start, found = threading.Barrier(16), []
def use():
    start.wait()
    found.append(pydantic.SecretStr("a") == pydantic.SecretStr("a"))
threads = [threading.Thread(target=use) for _ in range(16)]
sys.setswitchinterval(1e-6)
for each in threads: each.start()
for each in threads: each.join()
print(len(found), all(found))
"""
    assert said(race) == ["16", "True"]


def test_a_module_that_stands_before_pythons_own_is_run_at_once(tmp_path: Path) -> None:
    (tmp_path / "secrets.py").write_text("print('run')\n")
    assert said("print('then')", tmp_path) == ["run", "then"]
