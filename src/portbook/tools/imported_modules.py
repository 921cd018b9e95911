"""One module per file of the operator, whether a command names it or one of its neighbours imports it.

Python keeps modules by name. A file that the command line names has a name of its own, so that it cannot hide
a real module. `from common import toolset` in a file beside it would run the same file again, under a second
name, with a second toolset in it.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

__all__ = ["SetAsideModules", "forget", "imported_from", "modules_below", "put_back", "remember", "take_all"]

# Modules of the operator, set aside so that the same files are imported anew beside them.
#
# Functions of the modules that are set aside go on to run: they hold on to their own names. Only imports made
# from now on find the new modules.

# Folders of installed packages: a virtualenv may stand beside the toolsets.
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


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
            if path.is_relative_to(folder) and _INSTALLED.isdisjoint(path.relative_to(folder).parts):
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
        same = next((each for each in self.modules if _is_from(each, found.origin)), None)
        return found if same is None else ModuleSpec(fullname, _SameModule(same))


_NAMED: Final = _NamedFiles()

# Four hundred modules of a start, whose files are not the operator's: a look at each would take 3 ms.
_NOT_THEIRS: Final = sys.stdlib_module_names | {"portbook"}


def imported_from(path: Path) -> ModuleType | None:
    """Return the module that an import statement made of the file at `path`; None if there is none."""
    own = {"__main__", *(module.__name__ for module in _NAMED.modules)}
    others = [
        module
        for name, module in sys.modules.items()
        if name not in own and name.partition(".")[0] not in _NOT_THEIRS
    ]
    return next((module for module in others if _is_from(module, str(path))), None)


def remember(module: ModuleType) -> None:
    """Let every later import of the file of `module` give this module."""
    _NAMED.modules = [each for each in _NAMED.modules if not _is_from(each, str(module.__file__))]
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


def _is_from(module: ModuleType, path: str) -> bool:
    file = getattr(module, "__file__", None)
    try:
        return isinstance(file, str) and os.path.samefile(file, path)  # noqa: PTH121 - called for every module
    except OSError:
        return False
