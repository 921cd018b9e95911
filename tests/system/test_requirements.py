"""Nothing required is untested, and nothing claims to show a requirement that is not there."""

from __future__ import annotations

import ast
import functools
import tomllib
from pathlib import Path

from support.portbook_process import ROOT, TESTS


def written_down() -> set[tuple[str, str]]:
    rows = tomllib.loads((ROOT / "requirements.toml").read_text())["requirement"]
    assert all(set(row) == {"id", "spec", "says", "test"} and all(row.values()) for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
    return {(row["id"], row["test"]) for row in rows}


@functools.cache
def shown_by_tests() -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        if "pytest.mark.covers" not in text:
            continue  # parsing is what takes time
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= {(name, f"{_relative(path)}::{node.name}") for name in _covered(node)}
    return found


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _covered(function: ast.FunctionDef) -> list[str]:
    return [
        str(ast.literal_eval(mark.args[0]))
        for mark in function.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.covers"
    ]


def test_every_requirement_has_the_test_that_claims_it() -> None:
    assert written_down() - shown_by_tests() == set()


def test_every_claim_of_a_test_is_a_requirement() -> None:
    assert shown_by_tests() - written_down() == set()
