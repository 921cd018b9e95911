"""Modules of the operator, set aside so that the same files are imported anew beside them.

Functions of the modules that are set aside go on to run: they hold on to their own names. Only imports made
from now on find the new modules.
"""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from portbook.tools.imported_files import put_back, take_all

__all__ = ["SetAsideModules", "modules_below"]

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
