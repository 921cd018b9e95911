"""The known name that is nearest to a misspelt one."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import portbook
from portbook.text.did_you_mean import did_you_mean

SOURCE = Path(portbook.__file__).parent


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        case("a letter is missing", "alow", ("allow", "deny"), "did you mean allow?"),
        case("letters are swapped", "GTE", ("GET", "POST"), "did you mean GET?"),
        case("upper case", "TOOLS/CALL", ("tools/call", "tools/list"), "did you mean tools/call?"),
        case("known in upper case", "get", ("GET", "POST"), "did you mean GET?"),
        case("shown differently", "prot", {"port": "server.port"}, "did you mean server.port?"),
        case("nothing is near", "zebra", ("allow", "deny"), "use allow, deny"),
        case("nothing is known", "allow", (), "use allow, deny"),
        case("no name", "", ("allow",), "use allow, deny"),
    ],
)
def test_the_nearest_known_name_is_suggested(
    name: str, known: Iterable[str] | dict[str, str], expected: str
) -> None:
    assert did_you_mean(name, known, "use allow, deny") == expected


def test_without_a_fallback_nothing_is_suggested() -> None:
    assert did_you_mean("zebra", ("allow",)) == ""


def test_suggestions_are_worded_in_one_module() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.name == "did_you_mean.py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert "get_close_matches" not in path.read_text("utf-8"), path
        assert not any("did you mean" in text for text in texts if isinstance(text, str)), path
