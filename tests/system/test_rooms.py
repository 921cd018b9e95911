"""The tree keeps its shape: few modules at the top, distinct names, tests at the path of their module."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from support.portbook_process import ROOT, TESTS

PACKAGE = ROOT / "src" / "portbook"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__"))

MOST_AT_THE_TOP = 12
# Below this, a module is a table or a few lines, and its users' tests cover it.
LINES_WORTH_A_TEST = 60


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def test_few_modules_stand_at_the_top_of_the_package() -> None:
    loose = [name_of(module) for module in MODULES if module.parent == PACKAGE]
    assert len(loose) <= MOST_AT_THE_TOP, loose


def test_no_class_name_is_used_twice() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name_of(module))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def stem_of(name: str) -> str:
    """What a name is about: `approving`, `approval` and `approvals` are about one thing."""
    for ending in ("ings", "ing", "als", "al", "ances", "ance", "ers", "er", "ions", "ion", "es", "e", "s"):
        if name.endswith(ending) and len(name) - len(ending) > 3:
            return name.removesuffix(ending)
    return name


def test_no_two_modules_of_a_room_differ_by_an_ending_only() -> None:
    twins: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for module in MODULES:
        twins[module.parent, stem_of(module.stem)].append(name_of(module))
    assert [names for names in twins.values() if len(names) > 1] == []


def test_no_gerund_stands_beside_its_noun_in_the_whole_tree() -> None:
    nouns = {stem_of(module.stem) for module in MODULES if not module.stem.endswith("ing")}
    gerunds = [module for module in MODULES if module.stem.endswith("ing")]
    assert [name_of(module) for module in gerunds if stem_of(module.stem) in nouns] == []


def test_nine_of_ten_modules_have_their_test_at_the_mirrored_path() -> None:
    worth = [module for module in MODULES if module.read_text("utf-8").count("\n") > LINES_WORTH_A_TEST]
    without = [
        name_of(module)
        for module in worth
        if not (TESTS / module.relative_to(PACKAGE).parent / f"test_{module.name}").is_file()
    ]
    assert len(without) <= len(worth) / 10, without


def test_a_test_stands_where_its_module_does() -> None:
    apart = {"bench", "browser", "system", "support", "interop", "conformance"}
    apart |= {"fixtures", "golden", "corpora"}  # no tests
    homeless = [
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("test_*.py")
        if path.relative_to(TESTS).parts[0] not in apart
        and not (PACKAGE / path.relative_to(TESTS).parent).is_dir()
    ]
    assert homeless == []
