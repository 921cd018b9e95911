"""Imports toolsets from the Python files and modules named on the command line. Runs the operator's code."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from portbook.text.did_you_mean import did_you_mean
from portbook.text.late_pattern import late_pattern
from portbook.tools.imported_modules import forget, imported_from, remember
from portbook.tools.mistake_place import place_of_error, shown_file
from portbook.tools.pydantic_plugins import spare_the_search
from portbook.tools.spec import BadTool
from portbook.tools.toolset import Toolset

__all__ = ["MissingToolset", "ToolsetLoader", "load_toolsets"]

# Names of the folders of installed packages.
_INSTALLED = ("site-packages", "dist-packages")

_NO_OPTION = late_pattern(r"Toolset\.(\w+)\(\) got an unexpected keyword argument '([^']+)'")
_NO_NAME = late_pattern(r"cannot import name '([^']+)'")
_FASTMCP = "docs/how-to/come-from-fastmcp.md"

# Path prefixes of files in a traceback that are not the operator's.
_NOT_THEIRS = (str(Path(__file__).parent.parent) + "/", importlib.__file__, "<frozen importlib")


def _not_theirs() -> tuple[str, ...]:
    """Return `_NOT_THEIRS`, with the package `mcp` where one was imported: it says itself what it lacks."""
    alias = getattr(sys.modules.get("mcp"), "__file__", None)
    return _NOT_THEIRS if alias is None else (*_NOT_THEIRS, f"{Path(alias).parent}/")


class MissingToolset(BadTool):
    """There is no such file or module: the mistake is where it is named."""


class ToolsetLoader:
    """Imports sources one after the other, and returns each toolset once.

    A file that is named twice is imported once, whether by different paths, through a link, or as a file and
    as a module: the command line may name what the settings name too. So is one that another one imports.
    """

    def __init__(self) -> None:
        self._files: set[tuple[int, int]] = set()
        self._found: set[int] = set()

    def load(self, source: str) -> list[Toolset]:
        """Return the toolsets of a source that no earlier one had.

        Raises `BadTool` where it does not exist, cannot be imported, or has no toolset.
        """
        file = _file_of(source)
        if file is not None and file in self._files:
            return []
        new = [toolset for toolset in load_toolsets(source) if id(toolset) not in self._found]
        self._found.update(map(id, new))
        if file is not None:
            self._files.add(file)
        return new


def load_toolsets(source: str) -> list[Toolset]:
    """Import `source`, a path that ends in .py or a module's name, and return its toolsets.

    Raises `BadTool` where it does not exist, cannot be imported, or has no toolset.
    """
    is_file = source.endswith(".py")
    if not is_file and ("/" in source or source.startswith(".") or Path(source).is_file()):
        raise MissingToolset(f"{source}: not a toolset; name a file that ends in .py, or a module")
    spare_the_search()
    module = _import_file(Path(source)) if is_file else _import_module(source)
    found = {id(value): value for value in vars(module).values() if isinstance(value, Toolset)}
    if not found:
        place = f"{shown_file(source)}:1:1" if is_file else source
        raise BadTool(f'{place}: no toolset in it; make one with toolset = Toolset("name") and @toolset.tool')
    return list(found.values())


def _file_of(source: str) -> tuple[int, int] | None:
    """Return device and inode of the file behind a source; None where there is none, or it is unknown."""
    path: str | None = source
    if not source.endswith(".py"):
        try:
            spec = importlib.util.find_spec(source)
        except (Exception, SystemExit):  # noqa: BLE001 - a package that fails; importing it will explain why
            return None
        path = spec.origin if spec is not None and spec.has_location else None
    try:
        status = Path(path).stat() if path is not None else None
    except OSError:
        return None
    return None if status is None else (status.st_dev, status.st_ino)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise MissingToolset(f"{shown_file(str(path))}: no such file; create it, or correct the path")
    imported = imported_from(path)
    if imported is not None:
        return imported
    spec = importlib.util.spec_from_file_location(_module_name(path), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    remember(module)
    _look_beside(path)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        forget(module)
        raise _explained(str(path), error) from error
    return module


def _look_beside(path: Path) -> None:
    """Let a file import its neighbours: before installed packages, but after the standard library.

    Standard modules are imported late in many places, and a neighbour may be called `json.py`.
    """
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        installed = (at for at, entry in enumerate(sys.path) if Path(entry).name in _INSTALLED)
        sys.path.insert(next(installed, len(sys.path)), folder)


def _module_name(path: Path) -> str:
    """Return a unique module name for a tool's file, as it appears in pickles and logs.

    The prefix avoids hiding a real module. The number avoids a clash with a file of the same name in a
    different folder, because type hints are resolved by module name.
    """
    name = f"portbook_tools_{path.stem}"
    number = 1
    while (numbered := name if number == 1 else f"{name}_{number}") in sys.modules:
        number += 1
    return numbered


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise _explained(name, error) from error


def _explained(source: str, error: BaseException) -> BadTool:
    """Return why a source cannot be imported, where in the author's code, and what to do."""
    # The innermost line of the author's code: lines of Portbook and of importlib do not help.
    place = place_of_error(error, _not_theirs())
    if place is None and isinstance(error, ImportError | ValueError):
        file = Path(f"{source}.py")
        remedy = did_you_mean(str(file), (str(file),)) if file.is_file() else _remedy(error)
        return MissingToolset(f"{source}: cannot be imported: {error}; {remedy}")
    place = place or source
    if isinstance(error, BadTool):
        return BadTool(f"{place}: {error}")
    if isinstance(error, TypeError) and (found := _NO_OPTION.match(str(error))) is not None:
        return BadTool(
            f"{place}: @toolset.{found[1]} has no option {found[2]!r}; {_hint_of_option(*found.groups())}"
        )
    if isinstance(error, SyntaxError):
        return BadTool(f"{place}: not valid Python: {error.msg}; {_remedy(error)}")
    return BadTool(f"{place}: cannot be imported: {type(error).__name__}: {error}; {_remedy(error)}")


def _remedy(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return "correct this line, or the one before it"
    if isinstance(error, SystemExit):
        return 'put what ends the program below if __name__ == "__main__":'
    if isinstance(error, ImportError):
        if (error.name or "").startswith("mcp.") or "'FastMCP'" in str(error):
            return f"declare tools with a Toolset; {_FASTMCP} shows how"
        return _hint_of_name(error) or "correct the name, or install the package where Portbook is installed"
    if isinstance(error, AttributeError) and isinstance(error.obj, Toolset):
        return _hint_of_attribute(error.name or "")
    return "correct this line"


def _hint_of_attribute(name: str) -> str:
    """Return what a toolset has in place of an attribute that it does not have."""
    if name.startswith("run"):
        return "`portbook serve` serves the file; leave this line out"
    known = [each for each in dir(Toolset) if not each.startswith("_")]
    return did_you_mean(name, known, f"{_FASTMCP} shows what a Toolset has")


def _hint_of_option(decorator: str, option: str) -> str:
    """Return the option that was meant, or all that there are."""
    if option in ("output_schema", "outputSchema"):
        return "the hint of what the function returns is the output schema"
    from inspect import signature  # late: only where there is a mistake to tell

    known = [
        name for name in signature(getattr(Toolset, decorator)).parameters if name not in ("self", "function")
    ]
    return did_you_mean(option, known) or f"use one of {', '.join(known)}"


def _hint_of_name(error: ImportError) -> str:
    """Return the public name that was meant, where a file imports one that its module does not have."""
    found = _NO_NAME.match(str(error))
    known = getattr(sys.modules.get(error.name or ""), "__all__", ())
    return "" if found is None else did_you_mean(found[1], known)
