"""Toolsets from Python files and modules, as named on the command line. Runs the operator's code."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from portbook.tools.spec import BadTool
from portbook.tools.toolset import Toolset

__all__ = ["load_toolsets"]


def load_toolsets(source: str) -> list[Toolset]:
    """Import `source`, a path that ends in .py or a module's name, and return its toolsets.

    Raises `BadTool` where it is not there, raises when imported, or has no toolset.
    """
    module = _import_file(Path(source)) if source.endswith(".py") else _import_module(source)
    found = {id(value): value for value in vars(module).values() if isinstance(value, Toolset)}
    if not found:
        raise BadTool(
            f'{source}: no toolset in it; make one with toolset = Toolset("name") and @toolset.tool'
        )
    return list(found.values())


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadTool(f"{path}: no such file")
    # The name a tool's file has in pickles and logs; the prefix keeps it from hiding a real module.
    spec = importlib.util.spec_from_file_location(f"portbook_tools_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:  # as if the file had been run: it may import what stands beside it
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadTool(_explain(str(path), error)) from error
    return module


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise BadTool(_explain(name, error)) from error


def _explain(source: str, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{source}: line {error.lineno}: {error.msg}"
    lines = [error.__traceback__]
    while (last := lines[-1]) is not None and last.tb_next is not None:
        lines.append(last.tb_next)
    where = f" (line {last.tb_lineno} of {last.tb_frame.f_code.co_filename})" if last else ""
    return f"{source}: cannot be imported: {type(error).__name__}: {error}{where}"
