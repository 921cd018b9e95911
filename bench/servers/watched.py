"""Runs the command line of Portbook with a mark before every statement on a call's way, for `bench.where`.

A mark writes down where it is and calls `getppid` in the C library, which makes callgrind write what it has
counted since the mark before. Marks do that only between two calls of the tool `mark`. WATCHED names the
files to mark; what was passed is written to `passed.json` at the second call of `mark`.
"""

import ast
import builtins
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

# Functions written in C alone: Python frames of the marks themselves would be counted.
_is_idle = [True]
_passed: list[int] = []
_places: list[str] = []
_ours = f"{os.sep}portbook{os.sep}"
_files = frozenset(os.environ["WATCHED"].split(","))
vars(builtins)["__watched_pass__"] = _passed.append
vars(builtins)["__watched_next__"] = next
vars(builtins)["__watched_marks__"] = itertools.chain(
    itertools.takewhile(bool, itertools.repeat(_is_idle)), iter(os.getppid, None)
)


class _Marks(ast.NodeTransformer):
    """Puts a mark before each statement of each function."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._within: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._within.append(node.name)
        node.body = [self.visit(each) for each in node.body]
        self._within.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._within.append(node.name)
        node.body = list(self._marked(node.body))
        self._within.pop()
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit_FunctionDef(node)  # type: ignore[arg-type]

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            block = getattr(node, name, [])
            if block and isinstance(block, list) and isinstance(block[0], ast.stmt):
                setattr(node, name, list(self._marked(block)))
            elif isinstance(block, list):
                setattr(node, name, [self.visit(each) for each in block])
        return node

    def _marked(self, statements: list[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in statements:
            is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            visited = self.visit(statement)
            if self._within and not is_docstring:
                _places.append(f"{self._file}:{'.'.join(self._within)}")
                mark = f"__watched_pass__({len(_places) - 1}); __watched_next__(__watched_marks__)"
                yield from (ast.copy_location(each, statement) for each in ast.parse(mark).body)
            yield visited


def _get_code(loader: SourceFileLoader, name: str, get_code: Any = SourceFileLoader.get_code) -> CodeType:
    path = loader.get_filename(name)
    file = path.rpartition(_ours)[2] if _ours in path else ""
    if file not in _files:
        return get_code(loader, name)
    marked = _Marks(file).visit(ast.parse(Path(path).read_bytes()))
    return compile(ast.fix_missing_locations(marked), path, "exec", dont_inherit=True)


def _toggle() -> int:
    """Begin to mark, or end and tell what was passed. In the place of `getppid`, which the tool calls."""
    if _is_idle:
        _passed.clear()
        _is_idle.clear()
    else:
        Path("passed.json").write_text(json.dumps([_places[each] for each in _passed]))
        sys.stdout.flush()
        os._exit(0)
    return 0


if __name__ == "__main__":
    setattr(SourceFileLoader, "get_code", _get_code)  # noqa: B010 - a method of the standard library
    setattr(os, "getppid", _toggle)  # noqa: B010
    # Time stands still: under callgrind, a second passes between two marks.
    setattr(time, "time_ns", itertools.repeat(time.time_ns()).__next__)  # noqa: B010
    from unhurried import main

    main()
