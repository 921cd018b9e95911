"""Makes the import of pydantic lighter: without a search for plugins, and without OpenSSL until it is used.

With the first model, pydantic looks for plugins among the entry points of all packages. The reader of
entry points is the largest part of Python's own library that a server would import: 1.7 MiB. Few machines
have a plugin, and that can be told by their files' bytes. Where there may be one, pydantic looks for
itself.

pydantic imports `secrets` to compare values of its `SecretStr`. That loads OpenSSL: 4 MiB with all that comes
along. So the module is run when something of it is used.

Reads the folders of `sys.path`, when pydantic would.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any, Final, cast

__all__ = ["lighten_pydantic", "may_have_plugins"]

_LOADER: Final = "pydantic.plugin._loader"
_SECRETS: Final = "secrets"
_IMPORTS_SECRETS: Final = "pydantic.types"


def lighten_pydantic() -> None:
    """Answer for pydantic, from now on, where it has no plugins; a second call does nothing."""
    if _LOADER not in sys.modules and not any(type(finder) is _PydanticFinder for finder in sys.meta_path):
        sys.meta_path.insert(0, _PydanticFinder())


class _PydanticFinder:
    """Finds two modules: the one that looks for pydantic's plugins, once, and `secrets` for pydantic.

    It stays where it is: whoever leaves `sys.meta_path` during a search hides the finder behind it.
    """

    __slots__ = ("_is_done",)

    def __init__(self) -> None:
        self._is_done = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == _SECRETS:
            importer = sys.modules.get(_IMPORTS_SECRETS)
            is_for_pydantic = importer is not None and _SECRETS not in vars(importer)
            return _late(self._next_spec(name)) if is_for_pydantic else None
        if name != _LOADER or self._is_done:
            return None
        self._is_done = True
        return None if may_have_plugins(sys.path) else ModuleSpec(name, cast("Any", _NoPlugins()))

    def _next_spec(self, name: str) -> ModuleSpec | None:
        """Return what the other finders find."""
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            found = None if find is None else find(name, None)
            if found is not None:
                return found
        return None


def _late(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Return the spec of a module of Python's own, to be run with its first use; None for any other."""
    standard = getattr(os, "__file__", None)
    if spec is None or spec.origin is None or standard is None:
        return None
    if Path(spec.origin).parent != Path(standard).parent or not hasattr(spec.loader, "exec_module"):
        return None  # somebody put a module before Python's own
    spec.loader = cast("Any", _RunLate(spec.loader))
    return spec


class _RunLate:
    """Loads a module whose code is run when something is looked up that it does not have yet."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._turn = RLock()
        self._is_running = False

    def __getattr__(self, name: str) -> Any:
        """Return what else a loader has."""
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        names = vars(module)
        empty = set(names)

        def run() -> None:
            with self._turn:  # another thread waits here until all names are there
                if names.get("__getattr__") is not look_up or self._is_running:
                    return
                spec: Any = module.__spec__
                if spec.loader is self:  # else it was reloaded
                    given = {name: value for name, value in names.items() if name not in empty}
                    self._is_running = True
                    try:
                        self._loader.exec_module(module)
                    finally:
                        self._is_running = False
                    names.update(given)  # what somebody has set, as if after the import
                    module.__loader__ = spec.loader = self._loader
                del names["__getattr__"], names["__dir__"]

        def look_up(name: str) -> Any:
            if name.startswith("__") and name != "__all__":  # asked of modules that nobody means to use
                raise AttributeError(name)
            run()
            try:
                return names[name]
            except KeyError:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}") from None

        def list_names() -> list[str]:
            run()
            return sorted(names)

        empty |= {"__getattr__", "__dir__"}
        names.update(__getattr__=look_up, __dir__=list_names)


class _NoPlugins:
    """Loads a module that knows of no plugins."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        found: list[ModuleType] = []

        def real(name: str) -> Any:
            """Return what else is in pydantic's own module, should anybody ask."""
            if name.startswith("__"):
                raise AttributeError(name)
            if not found:
                if sys.modules.get(_LOADER) is module:
                    sys.modules.pop(_LOADER, None)  # another thread may have been faster
                found.append(importlib.import_module(_LOADER))
            return getattr(found[0], name)

        vars(module).update(get_plugins=lambda: (), __getattr__=real)


def may_have_plugins(folders: Iterable[str]) -> bool:
    """Return whether a package in `folders` may have a plugin of pydantic; a no is always right."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True  # packages that are in no folder
    return any(map(_may_have_plugins, folders))


def _may_have_plugins(folder: str) -> bool:
    path = Path(folder)
    if path.name.lower().endswith(".egg"):  # a package by itself, whose files have other names
        return True
    try:
        return any(map(_may_be_plugin, path.iterdir()))
    except FileNotFoundError:
        return False
    except OSError:  # an archive, for example
        return True


def _may_be_plugin(path: Path) -> bool:
    name = path.name.lower()  # as `importlib.metadata` compares names
    if not name.endswith((".dist-info", ".egg-info")):
        return name.endswith((".egg", ".egg-link"))
    try:
        return b"pydantic" in (path / "entry_points.txt").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return False
