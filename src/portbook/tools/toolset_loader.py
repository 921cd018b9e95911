"""Imports toolsets from the Python files and modules named on the command line. Runs the operator's code.

Each file of the operator is one module, however it is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from portbook.text.did_you_mean import did_you_mean
from portbook.text.late_pattern import late_pattern
from portbook.tools.lighter_pydantic_import import lighten_pydantic
from portbook.tools.mistake_place import place_of_error, shown_file
from portbook.tools.spec import BadTool
from portbook.tools.toolset import Toolset

__all__ = [
    "MissingToolset",
    "SetAsideModules",
    "ToolsetLoader",
    "forget",
    "imported_from",
    "load_toolsets",
    "modules_below",
    "put_back",
    "remember",
    "take_all",
]

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

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        """Import sources; `redact` takes secrets out of what they raise, which may quote anything."""
        self._redact = redact
        self._files: set[tuple[int, int]] = set()
        self._found: set[int] = set()

    def load(self, source: str) -> list[Toolset]:
        """Return the toolsets of a source that no earlier one had.

        Raises `BadTool` where it does not exist, cannot be imported, or has no toolset.
        """
        file = _file_of(source)
        if file is not None and file in self._files:
            return []
        found = load_toolsets(source, self._redact)
        new = [toolset for toolset in found if id(toolset) not in self._found]
        self._found.update(map(id, new))
        if file is not None:
            self._files.add(file)
        return new


def load_toolsets(source: str, redact: Callable[[str], str] = str) -> list[Toolset]:
    """Import `source`, a path that ends in .py or a module's name, and return its toolsets.

    `redact` takes secrets out of what it raises.

    Raises `BadTool` where it does not exist, cannot be imported, or has no toolset.
    """
    if not source:
        raise MissingToolset("a toolset has an empty name; name a file that ends in .py, or a module")
    is_file = source.endswith(".py")
    if ".py:" in source:
        file, _, _ = source.partition(":")
        raise MissingToolset(f"{source}: name the file alone, {file}; every toolset in it is served")
    if not is_file and ("/" in source or source.startswith(".") or Path(source).is_file()):
        raise MissingToolset(f"{source}: not a toolset; name a file that ends in .py, or a module")
    if not is_file and Path(source).is_dir() and _file_of(source) is None:
        raise MissingToolset(f"{source}: is a folder; name a file in it")
    lighten_pydantic()
    module = _import_file(Path(source), redact) if is_file else _import_module(source, redact)
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
    return None if path is None else _identity(path)


def _import_file(path: Path, redact: Callable[[str], str]) -> ModuleType:
    problem = None
    if path.is_dir():
        problem = "is a folder; name a file in it"
    elif not path.is_file():
        problem = "no such file; create it, or correct the path"
        if os.path.lexists(path):
            problem = "not a regular file; name one"
    elif not os.access(path, os.R_OK):
        problem = "cannot be read; correct its rights"
    if problem is not None:
        raise MissingToolset(f"{shown_file(str(path))}: {problem}")
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
        raise _explained(str(path), error, redact) from error
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


def _import_module(name: str, redact: Callable[[str], str]) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise _explained(name, error, redact) from error


def _explained(source: str, error: BaseException, redact: Callable[[str], str]) -> BadTool:
    """Return why a source cannot be imported, where in the author's code, and what to do."""
    # The innermost line of the author's code: lines of Portbook and of importlib do not help.
    place, text = place_of_error(error, _not_theirs()), _text_of(error)
    if place is None and isinstance(error, ImportError | ValueError):
        file = Path(f"{source}.py")
        remedy = did_you_mean(str(file), (str(file),)) if file.is_file() else _remedy(error)
        return MissingToolset(f"{source}: cannot be imported: {redact(text)}; {remedy}")
    place = place or source
    if isinstance(error, BadTool):
        return BadTool(f"{place}: {error}")
    if isinstance(error, TypeError) and (found := _NO_OPTION.match(text)) is not None:
        return BadTool(
            f"{place}: @toolset.{found[1]} has no option {found[2]!r}; {_hint_of_option(*found.groups())}"
        )
    if isinstance(error, SyntaxError):
        return BadTool(f"{place}: not valid Python: {error.msg}; {_remedy(error)}")
    said = f"{type(error).__name__}: {redact(text)}"
    return BadTool(f"{place}: cannot be imported: {said}; {_remedy(error)}")


def _text_of(error: BaseException) -> str:
    """Return what an exception of the author says; it may fail to say it."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - the author's code
        return f"(its text raised {type(broken).__name__})"


def _remedy(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return "correct this line, or the one before it" if error.lineno else "save it as text in UTF-8"
    if isinstance(error, SystemExit):
        return 'put what ends the program below if __name__ == "__main__":'
    if isinstance(error, ImportError):
        if (error.name or "").startswith("mcp.") or "'FastMCP'" in _text_of(error):
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
    found = _NO_NAME.match(_text_of(error))
    known = getattr(sys.modules.get(error.name or ""), "__all__", ())
    return "" if found is None else did_you_mean(found[1], known)


# One module per file of the operator, whether a command names it or one of its neighbours imports it.
#
# Python keeps modules by name. A file that the command line names has a name of its own, so that it cannot
# hide a real module. `from common import toolset` in a file beside it would run the same file again, under
# a second name, with a second toolset in it.

# Modules of the operator, set aside so that the same files are imported anew beside them.
#
# Functions of the modules that are set aside go on to run: they hold on to their own names. Only imports made
# from now on find the new modules.

# Folders of installed packages: a virtualenv may stand beside the toolsets.
_INSTALLED_PARTS: Final = frozenset({"site-packages", "dist-packages"})


class SetAsideModules:
    """The modules below some folders, until it is known whether their successors can be used."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Set them aside now."""
        self._names = {name: module for name, module, _ in modules_below(folders)}
        self._named = take_all()
        for name in self._names:
            del sys.modules[name]
        importlib.invalidate_caches()
        linecache.checkcache()

    def put_back(self, folders: Iterable[Path]) -> None:
        """Drop what was imported since below `folders`, and put the modules back."""
        for name in [name for name, _, _ in modules_below(folders)]:
            del sys.modules[name]
        sys.modules.update(self._names)
        put_back(self._named)


def modules_below(folders: Iterable[Path]) -> Iterator[tuple[str, ModuleType, Path]]:
    """Yield name, module and file of what was imported from these folders, at any depth."""
    wanted = [folder.resolve() for folder in folders]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or name == "__main__" or name.partition(".")[0] == "portbook":
            continue
        path = Path(file)
        for folder in wanted:
            if path.is_relative_to(folder) and _INSTALLED_PARTS.isdisjoint(path.relative_to(folder).parts):
                yield name, module, path
                break


if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # importlib.abc imports all compressors, and the import system does not ask for these classes
    Loader = MetaPathFinder = object


class _SameModule(Loader):
    """Gives a module that was run before, under one more name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        del spec
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import has put that of the second name there


class _NamedFiles(MetaPathFinder):
    """Takes the place of `PathFinder`, and knows the files that were imported by their path."""

    def __init__(self) -> None:
        self.modules: list[ModuleType] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or found.origin is None or not found.has_location:
            return found
        origin = _identity(found.origin)
        same = next((each for each in self.modules if _is_from(each, origin)), None)
        return found if same is None else ModuleSpec(fullname, _SameModule(same))


_NAMED: Final = _NamedFiles()

# Four hundred modules of a start, whose files are not the operator's: a look at each would take 3 ms.
_NEVER_FORGOTTEN: Final = sys.stdlib_module_names | {"portbook"}


def imported_from(path: Path) -> ModuleType | None:
    """Return the module that an import statement made of the file at `path`; None if there is none."""
    own = {"__main__", *(module.__name__ for module in _NAMED.modules)}
    others = [
        module
        for name, module in sys.modules.items()
        if name not in own and name.partition(".")[0] not in _NEVER_FORGOTTEN
    ]
    wanted = _identity(str(path))
    return next((module for module in others if _is_from(module, wanted)), None)


def remember(module: ModuleType) -> None:
    """Let every later import of the file of `module` give this module."""
    file = _identity(str(module.__file__))
    _NAMED.modules = [each for each in _NAMED.modules if not _is_from(each, file)]
    _NAMED.modules.append(module)
    if _NAMED not in sys.meta_path and PathFinder in sys.meta_path:
        # After the finder of built-in modules, which no file can hide.
        sys.meta_path.insert(sys.meta_path.index(PathFinder), _NAMED)


def forget(module: ModuleType) -> None:
    """Forget a module that could not be run."""
    _NAMED.modules.remove(module)


def take_all() -> list[ModuleType]:
    """Forget every module, and return them: their files are imported anew."""
    taken, _NAMED.modules = _NAMED.modules, []
    return taken


def put_back(modules: list[ModuleType]) -> None:
    """Let imports give these modules again, and none that came after them."""
    _NAMED.modules = modules


def _is_from(module: ModuleType, wanted: tuple[int, int] | None) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and wanted is not None and _identity(file) == wanted


def _identity(path: str) -> tuple[int, int] | None:
    """Return device and inode, which all names of a file share; None where there is no such file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called for every module
    except OSError:
        return None
    return found.st_dev, found.st_ino
