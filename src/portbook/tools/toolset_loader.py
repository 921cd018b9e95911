"""Imports toolsets from the Python files and modules named on the command line. Runs the operator's code."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from portbook.tools.imported_files import forget, imported_from, remember
from portbook.tools.spec import BadTool
from portbook.tools.toolset import Toolset

__all__ = ["load_all", "load_toolsets"]

# Names of the folders of installed packages.
_INSTALLED = ("site-packages", "dist-packages")

# Path prefixes of files in a traceback that are not the operator's.
_NOT_THEIRS = (str(Path(__file__).parent.parent) + "/", importlib.__file__, "<frozen importlib")


def load_all(sources: Iterable[str]) -> list[Toolset]:
    """Import every source and return their toolsets, each once.

    A file that is named twice is imported once, whether by different paths, through a link, or as a file and
    as a module: the command line may name what the settings name too. So is one that another one imports.

    Raises `BadTool` where a source does not exist, cannot be imported, or has no toolset.
    """
    files: set[tuple[int, int]] = set()
    found: dict[int, Toolset] = {}
    for source in sources:
        file = _file_of(source)
        if file is not None and file in files:
            continue
        found |= {id(toolset): toolset for toolset in load_toolsets(source)}
        if file is not None:
            files.add(file)
    return list(found.values())


def load_toolsets(source: str) -> list[Toolset]:
    """Import `source`, a path that ends in .py or a module's name, and return its toolsets.

    Raises `BadTool` where it does not exist, cannot be imported, or has no toolset.
    """
    module = _import_file(Path(source)) if source.endswith(".py") else _import_module(source)
    found = {id(value): value for value in vars(module).values() if isinstance(value, Toolset)}
    if not found:
        raise BadTool(
            f'{source}: no toolset in it; make one with toolset = Toolset("name") and @toolset.tool'
        )
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
        raise BadTool(f"{path}: no such file")
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
        raise BadTool(_explain(str(path), error)) from error
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
        raise BadTool(_explain(name, error)) from error


def _explain(source: str, error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.lineno is not None:
        # The error may be in a file that this one imports.
        return f"{error.filename or source}: line {error.lineno}: {error.msg}"
    # The innermost line of the operator's code: lines of Portbook and of importlib do not help.
    theirs = [
        f" (line {line} of {frame.f_code.co_filename})"
        for frame, line in walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_NOT_THEIRS)
    ]
    where = theirs[-1] if theirs else ""
    return f"{source}: cannot be imported: {type(error).__name__}: {error}{where}"
